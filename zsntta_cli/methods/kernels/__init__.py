"""Kernels: loops over items that are compiled to machine code, kept and loaded."""
