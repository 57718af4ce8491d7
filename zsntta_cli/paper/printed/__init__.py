"""The printed content of the paper: its tables, their numbers and names, and remarks on these."""
