"""Loops over items as machine code: how they are compiled, kept and loaded."""
