"""Negative words: what an image shows if it shows none of the classes."""
