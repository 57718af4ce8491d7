"""Streams x methods -> records."""
