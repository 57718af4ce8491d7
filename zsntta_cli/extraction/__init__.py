"""Data sets x encoder -> feature files."""
