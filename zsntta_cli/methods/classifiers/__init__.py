"""Classifiers that adapt. Each of them stands behind a detector, which decides on noise."""
