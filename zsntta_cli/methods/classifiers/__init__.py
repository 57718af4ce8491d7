"""Classifiers that adapt. Each of them follows a detector, which decides on noise."""
