"""Comparisons as people read them: laid out as the paper has them, drawn, written to files."""
