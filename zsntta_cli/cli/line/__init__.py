"""The command line itself: how a line is read, and how options, errors and outputs are worded."""
