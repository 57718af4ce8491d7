"""Detectors that learn from the stream, without words: AdaND, ours, and newer ones."""
