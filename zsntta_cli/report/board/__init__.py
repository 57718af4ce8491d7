"""The board: all methods on the same streams of the same sets, as one table and one page."""
