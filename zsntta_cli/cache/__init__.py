"""Feature files: what they hold, whose they are, where they lie."""
