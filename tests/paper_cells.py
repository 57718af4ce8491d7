"""Cells of the paper's tables."""

from zsntta_cli.paper.cells import PaperEncoder, cells
from zsntta_cli.paper.printed.tables import find_table


def cell_of(table, **values):
    """The first cell of a table with some values of what is printed."""
    every = cells(find_table(str(table)), PaperEncoder())
    return next(cell for cell in every if all(getattr(cell.of, k) == v for k, v in values.items()))
