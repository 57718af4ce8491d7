"""A table's measured and printed numbers, their difference, and whether seeds explain it.

This module does not import NumPy.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zsntta_cli.paper.runs import Cell
from zsntta_cli.paper.tables import AVERAGE, LEAD, NOTHING_PRINTED, Printed

if TYPE_CHECKING:
    from zsntta_cli.results.frame import Value
    from zsntta_cli.simulation.record import Record
    from zsntta_cli.simulation.runs import RunSettings

_CONFIDENCE = 0.95
_ROUNDING = 0.005  # percent: the largest error of a number that is printed with two digits


@dataclass(frozen=True)
class Number:
    """A metric of a cell, in percent: measured and printed, nan where there is none."""

    cell: Cell
    metric: str
    printed: Printed = NOTHING_PRINTED
    measured: "Value | None" = None  # its ± is the deviation over seeds
    sets_std: float = math.nan  # the mean of the sets' deviations, which the paper prints as ±
    records: "Sequence[Record]" = ()  # of the cell

    @property
    def mean(self) -> float:
        """The measured value; nan also of an average that lacks a set."""
        return self.measured.mean if self.measured else math.nan

    @property
    def difference(self) -> float:
        """The measured minus the printed value."""
        return self.mean - self.printed.value

    @property
    def is_of_other_images(self) -> bool:
        """Whether the number of images of one of its sets differs from the published one."""
        return any(note.kind == "images" for record in self.records for note in record.notes)

    @property
    def most(self) -> float:
        """The largest difference that seeds explain; nan if there is none, or no known spread.

        The ± that the paper prints of an average is not the average's, so that is left out.
        """
        if not self.measured or math.isnan(self.difference):
            return math.nan
        theirs = math.nan if self.cell.place.ood_set == AVERAGE else self.printed.std
        ours, seeds = self.measured.std, len(self.measured.by_seed)
        return explained(ours, seeds, theirs, self.cell.table.seeds)

    @property
    def is_beyond(self) -> bool:
        """Whether seeds do not explain the difference; misprints and other images say nothing."""
        if self.printed.is_misprint or self.is_of_other_images:
            return False
        return abs(self.difference) > self.most + 1e-9  # never of nan


def explained(ours: float, n: int, theirs: float, m: int) -> float:
    """The largest difference of two means that seeds explain: t · s · √(1/n + 1/m), by Student's t.

    s is the standard deviation `ours` over `n` seeds, pooled with `theirs` over `m` where these are
    known (not nan, and of several seeds); nan if neither is. One printed run is m = 1.
    """
    spreads = [(ours, n - 1), (theirs, m - 1)]
    pooled = [(std, freedom) for std, freedom in spreads if freedom and not math.isnan(std)]
    if not pooled:
        return math.nan
    from scipy.special import stdtrit

    freedom = sum(freedom for _, freedom in pooled)
    std = math.sqrt(sum(freedom * std**2 for std, freedom in pooled) / freedom)
    t = float(stdtrit(freedom, (1 + _CONFIDENCE) / 2))
    return t * std * math.sqrt(1 / n + 1 / m) + _ROUNDING


def compare(every: Iterable[Cell], records: "Mapping[RunSettings, Record]") -> list[Number]:
    """All numbers of some cells, as printed and as measured by some runs.

    A measured number is the mean over its sets and the seeds that all of them share.
    """
    numbers = list[Number]()
    for cell in every:
        streams = cell.streams if records else ()
        used = [records[run] for runs in streams for run in runs if run in records]
        for metric in cell.table.metrics_of(cell.place):
            name, printed = metric.removesuffix(LEAD), cell.printed.get(metric, NOTHING_PRINTED)
            base = cell.base.streams if used and metric != name else streams
            by_set: dict[str, dict[int, float]] = {}
            for runs, base_runs in zip(streams, base, strict=True):
                sets = f"{runs[0].id_set} {runs[0].ood_set or ''}".rstrip()
                by_seed = by_set.setdefault(sets, {})
                for run, base_run in zip(runs, base_runs, strict=True):
                    if run in records and base_run in records:
                        of_base = 0.0 if base is streams else 100 * records[base_run].metric(name)
                        by_seed[run.stream.seed] = 100 * records[run].metric(name) - of_base
            measured, sets_std = None, math.nan
            if any(by_set.values()):
                from zsntta_cli.results.frame import SETS, average  # it imports NumPy

                measured, sets_std = average(by_set), average(by_set, SETS).std
            numbers.append(Number(cell, metric, printed, measured, sets_std, used))
    return numbers


def counts(numbers: Iterable[Number]) -> str:
    """Say how many numbers are measured, compared and marked."""
    measured = printed = compared = beyond = 0
    for number in numbers:
        measured += not math.isnan(number.mean)
        printed += number.printed.is_there
        compared += not math.isnan(number.difference)
        beyond += number.is_beyond
    if not printed:
        return f"{measured:,} numbers measured, none of them published"
    return f"{compared:,} of {printed:,} numbers compared, {beyond:,} marked !"
