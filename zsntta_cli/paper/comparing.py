"""Measured beside published: the difference, and whether it is more than the seeds make.

A cell is judged only by a spread that is known: that of the measured seeds, or else the ± that the
paper prints for the same runs (tables 20 and 21). Light: no NumPy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zsntta_cli.paper.cells import Cell
from zsntta_cli.paper.printed.misprints import Mark, mark
from zsntta_cli.paper.printed.published import Number

WITHIN, OUTSIDE, UNKNOWN, MISPRINT = "within", "outside", "no spread known", "misprint"
DEVIATIONS = 2  # |difference| of more than so many of its standard deviations is outside
ROUNDING = 0.005  # percent: what a printed number may be off by its two digits


@dataclass(frozen=True)
class Measured:
    """What is measured for a cell's metric, in percent (table 4: seconds, GiB)."""

    mean: float  # nan: a metric without samples
    std: float  # sample deviation over seeds of what is shown; nan of one seed
    sets_std: float  # the mean of the averaged sets' deviations, as the paper has its ±
    seeds: int
    present: int  # streams that it is the mean of
    wanted: int  # streams that the paper's number is the mean of

    @property
    def is_whole(self) -> bool:
        """Whether it is over as many streams as the paper's."""
        return self.present == self.wanted


@dataclass(frozen=True)
class Comparison:
    """A metric of a cell: measured, published, judged."""

    cell: Cell
    metric: str
    measured: Measured | None
    published: Number | None
    deviation: float = math.nan  # of the difference; nan where none is known

    @property
    def mark(self) -> Mark | None:
        """What is said of the printed number, if anything."""
        return mark(self.cell.of, self.metric) if self.published else None

    @property
    def difference(self) -> float:
        """Measured - published; nan where there is none, or the measured one is incomplete."""
        if not (self.measured and self.published and self.measured.is_whole):
            return math.nan
        return self.measured.mean - self.published.mean

    @property
    def verdict(self) -> str:
        """WITHIN, OUTSIDE, UNKNOWN or MISPRINT; nothing where there is no difference."""
        if math.isnan(self.difference):
            return ""
        if (said := self.mark) and said.is_wrong:
            return MISPRINT
        if math.isnan(self.deviation):
            return UNKNOWN
        most = DEVIATIONS * self.deviation + ROUNDING
        return WITHIN if abs(self.difference) <= most + 1e-9 else OUTSIDE


def published_alone(some: Sequence[Cell]) -> list[Comparison]:
    """All metrics of some cells, with nothing measured."""
    return [
        Comparison(cell, metric, None, published_number(cell, i))
        for cell in some
        for i, metric in enumerate(cell.metrics)
    ]


def published_number(cell: Cell, i: int) -> Number | None:
    """What is published of a cell's metric, if anything."""
    return cell.published[i] if cell.published else None
