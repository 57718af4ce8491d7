"""Measured numbers beside published ones: the difference, and whether chance alone explains it.

spreads.py computes the differences that chance makes. This module does not import NumPy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from zsntta_cli.paper.cells import PaperCell
from zsntta_cli.paper.printed.published import PaperNumber, Remark, remark_on
from zsntta_cli.paper.sampling import UNKNOWN_VARIANCE, Variance

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record

WITHIN, OUTSIDE, UNKNOWN, MISPRINT = "within", "outside", "no spread known", "misprint"
OTHER_IMAGES = "other images"  # the number of images shows that a set is not the published one
ROUNDING = 0.005  # percent: the largest error of a number that is printed with two digits


@dataclass(frozen=True)
class Measured:
    """The measured value of a cell's metric, in percent (table 4: seconds, GiB)."""

    mean: float  # nan: a metric without samples, or an average that lacks a set
    std: float = math.nan  # sample standard deviation of the mean over seeds; nan for one seed
    sets_std: float = math.nan  # the mean of the sets' standard deviations, as the paper's ±
    seeds: tuple[int, ...] = (0,)  # the seeds that all of its sets have
    lacks: str = ""  # why there is no average: the sets that there are
    records: "tuple[Record, ...]" = ()  # the records that it is computed from
    miscounted: tuple[str, ...] = ()  # its sets that are not the published ones, with counts


@dataclass(frozen=True)
class Comparison:
    """A metric of a cell with its measured and published values, and the verdict on them."""

    cell: PaperCell
    metric: str
    measured: Measured | None
    published: PaperNumber | None
    variance: Variance = UNKNOWN_VARIANCE  # of the difference

    @property
    def deviation(self) -> float:
        """The standard deviation of the difference of two runs; nan if it is not known."""
        return math.sqrt(self.variance.value)

    @property
    def remark(self) -> Remark | None:
        """The remark on the printed number, if there is one."""
        return remark_on(self.cell.of, self.metric) if self.published else None

    @property
    def difference(self) -> float:
        """The measured minus the published value; nan if one of them is missing."""
        if not (self.measured and self.published):
            return math.nan
        return self.measured.mean - self.published.mean

    @property
    def verdict(self) -> str:
        """WITHIN, OUTSIDE, or why it is neither; empty if there is no difference."""
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
    """Give all metrics of some cells, with published values only."""
    return [
        Comparison(cell, metric, None, number)
        for cell in cells
        for metric, number in zip_longest(cell.metrics, cell.published)
    ]
