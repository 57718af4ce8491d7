"""Measured beside published: the difference, and whether chance alone makes one as large.

What chance makes is in spreads.py. Light: no NumPy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from zsntta_cli.paper.cells import PaperCell
from zsntta_cli.paper.printed.published import PaperNumber, Remark, remark_on
from zsntta_cli.paper.sampling import Variance

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record

WITHIN, OUTSIDE, UNKNOWN, MISPRINT = "within", "outside", "no spread known", "misprint"
OTHER_IMAGES = "other images"  # of a set that is not the published one, by its count
ROUNDING = 0.005  # percent: what a printed number may be off by its two digits


@dataclass(frozen=True)
class Measured:
    """What is measured for a cell's metric, in percent (table 4: seconds, GiB)."""

    mean: float  # nan: a metric without samples, or an average that lacks a set
    std: float = math.nan  # sample deviation over seeds of what is shown; nan of one seed
    sets_std: float = math.nan  # the mean of the sets' deviations, as the paper has its ±
    seeds: tuple[int, ...] = (0,)  # those that all of its sets have
    lacks: str = ""  # why an average is none: which sets it has
    records: "tuple[Record, ...]" = ()  # that it is of
    miscounted: tuple[str, ...] = ()  # its sets that are not the published ones, by their counts


@dataclass(frozen=True)
class Comparison:
    """A metric of a cell: measured, published, judged."""

    cell: PaperCell
    metric: str
    measured: Measured | None
    published: PaperNumber | None
    variance: Variance = Variance(math.nan)  # noqa: RUF009 -- it is frozen; of the difference

    @property
    def deviation(self) -> float:
        """The standard deviation of the difference of two runs; nan where none is known."""
        return math.sqrt(self.variance.value)

    @property
    def remark(self) -> Remark | None:
        """What is said of the printed number, if anything."""
        return remark_on(self.cell.of, self.metric) if self.published else None

    @property
    def difference(self) -> float:
        """Measured - published; nan where there is none."""
        if not (self.measured and self.published):
            return math.nan
        return self.measured.mean - self.published.mean

    @property
    def verdict(self) -> str:
        """WITHIN, OUTSIDE, or why it is neither; nothing where there is no difference."""
        if math.isnan(self.difference):
            return ""
        if self.remark and self.remark.is_wrong:
            return MISPRINT
        if self.measured and self.measured.miscounted:
            return OTHER_IMAGES
        if math.isnan(self.deviation):
            return UNKNOWN
        return WITHIN if abs(self.difference) <= self.most + 1e-9 else OUTSIDE

    @property
    def most(self) -> float:
        """The largest difference that chance alone makes in 95 % of all reproductions."""
        return self.variance.deviations * self.deviation + ROUNDING


def compare_published(cells: Sequence[PaperCell]) -> list[Comparison]:
    """All metrics of some cells, with nothing measured."""
    return [
        Comparison(cell, metric, None, number)
        for cell in cells
        for metric, number in zip_longest(cell.metrics, cell.published)
    ]
