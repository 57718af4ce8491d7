"""Classifiers that adapt, behind whatever decides which items are noise."""
