"""Simulate methods on streams, which gives records; and check whether a method is honest."""
