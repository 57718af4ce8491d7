"""Measured numbers beside published ones: the difference, and whether seeds explain it.

This module does not import NumPy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from zsntta_cli.paper.cells import PaperCell
from zsntta_cli.paper.printed.published import AVERAGE, PaperNumber, Remark, remark_on

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record

_CONFIDENCE = 0.95
_ROUNDING = 0.005  # percent: the largest error of a number that is printed with two digits


@dataclass(frozen=True)
class Measured:
    """The measured value of a cell's metric, in percent."""

    mean: float  # nan: a metric without samples, or an average that lacks a set
    std: float = math.nan  # sample standard deviation of the mean over seeds; nan for one seed
    sets_std: float = math.nan  # the mean of the sets' standard deviations, as the paper's ±
    seeds: tuple[int, ...] = (0,)  # the seeds that all of its sets have
    lacks: str = ""  # why there is no average: the sets that there are
    records: "tuple[Record, ...]" = ()  # the records that it is computed from
    miscounted: tuple[str, ...] = ()  # its sets that are not the published ones, with counts


@dataclass(frozen=True)
class Comparison:
    """A metric of a cell with its measured and published values."""

    cell: PaperCell
    metric: str
    measured: Measured | None
    published: PaperNumber | None

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
    def most(self) -> float:
        """The largest difference that seeds explain, by Student's t; nan if no spread is known.

        Our standard deviation over n seeds is pooled with the paper's over m, which is 1 where it
        prints none. The ± that it prints of an average is not the average's, so that is left out.
        """
        if math.isnan(self.difference) or not (self.measured and self.published):
            return math.nan
        n, m = len(self.measured.seeds), len(self.cell.table.seeds)
        theirs = math.nan if self.cell.of.ood_set == AVERAGE else self.published.std
        spreads = [(self.measured.std, n - 1), (theirs, m - 1)]
        known = [(std, freedom) for std, freedom in spreads if freedom and not math.isnan(std)]
        if not known:
            return math.nan
        from scipy.special import stdtrit

        freedom = sum(freedom for _, freedom in known)
        std = math.sqrt(sum(freedom * std**2 for std, freedom in known) / freedom)
        t = float(stdtrit(freedom, (1 + _CONFIDENCE) / 2))
        return t * std * math.sqrt(1 / n + 1 / m) + _ROUNDING

    @property
    def is_beyond_seeds(self) -> bool:
        """Whether seeds do not explain the difference; misprints and other images say nothing."""
        is_misprint = self.remark is not None and self.remark.is_wrong
        is_of_others = self.measured is not None and bool(self.measured.miscounted)
        return not (is_misprint or is_of_others) and abs(self.difference) > self.most + 1e-9


def compare_published(cells: Sequence[PaperCell]) -> list[Comparison]:
    """Give all metrics of some cells, with published values only."""
    return [
        Comparison(cell, metric, None, number)
        for cell in cells
        for metric, number in zip_longest(cell.metrics, cell.published)
    ]


def counts(comparisons: Sequence[Comparison]) -> str:
    """Say how many numbers are measured, compared and marked."""
    if not any(c.published for c in comparisons):
        return f"{count_measured(comparisons):,} numbers measured, nothing is published of them"
    printed = sum(not math.isnan(c.published.mean) for c in comparisons if c.published)
    compared = sum(not math.isnan(c.difference) for c in comparisons)
    beyond = sum(c.is_beyond_seeds for c in comparisons)
    return f"{compared:,} of {printed:,} numbers compared, {beyond:,} marked !"


def count_measured(comparisons: Sequence[Comparison]) -> int:
    """Count the numbers that are measured."""
    return sum(not math.isnan(c.measured.mean) for c in comparisons if c.measured)
