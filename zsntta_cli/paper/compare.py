"""Measured numbers of a table beside its printed ones: the difference, and what seeds explain.

This module does not import NumPy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zsntta_cli.paper.runs import Streams, Wishes, cells, streams
from zsntta_cli.paper.tables import AVERAGE, LEAD, PaperTable, Place, Printed

if TYPE_CHECKING:
    from zsntta_cli.results.frame import Value
    from zsntta_cli.simulation.record import Record
    from zsntta_cli.simulation.runs import RunSettings

_CONFIDENCE = 0.95
_ROUNDING = 0.005  # percent: the largest error of a number that is printed with two digits


@dataclass(frozen=True)
class Number:
    """A metric at a place of a table, in percent: measured and printed, as far as there is one."""

    table: PaperTable
    place: Place
    metric: str
    printed: Printed | None = None
    measured: "Value | None" = None  # its ± is the deviation over seeds
    sets_std: float = math.nan  # the mean of the sets' deviations, which the paper prints as ±
    records: "tuple[Record, ...]" = ()  # the records that it is computed from

    @property
    def is_measured(self) -> bool:
        """Whether there is a measured value: an average that lacks a set has none."""
        return self.measured is not None and not math.isnan(self.measured.mean)

    @property
    def difference(self) -> float:
        """The measured minus the printed value; nan if one of them is missing."""
        if self.measured is None or self.printed is None:
            return math.nan
        return self.measured.mean - self.printed.value

    @property
    def is_of_other_images(self) -> bool:
        """Whether one of its sets has another number of images than the published one."""
        return any(note.kind == "images" for record in self.records for note in record.notes)

    @property
    def most(self) -> float:
        """The largest difference that seeds explain; nan if no spread is known.

        The ± that the paper prints of an average is not the average's, so that is left out.
        """
        if self.measured is None or self.printed is None or math.isnan(self.difference):
            return math.nan
        theirs = None if self.place.ood_set == AVERAGE else self.printed.std
        std = math.nan if theirs is None else theirs
        return explained(self.measured.std, len(self.measured.by_seed), std, self.table.seeds)

    @property
    def is_beyond(self) -> bool:
        """Whether seeds do not explain the difference; misprints and other images say nothing."""
        if self.printed is None or self.printed.is_misprint or self.is_of_other_images:
            return False
        return abs(self.difference) > self.most + 1e-9  # never of nan


def explained(ours: float, n: int, theirs: float, m: int) -> float:
    """The largest difference of two means that seeds explain: t · s · √(1/n + 1/m), by Student's t.

    s is the standard deviation `ours` over `n` seeds, pooled with `theirs` over `m` where these are
    known (not nan, and of several seeds); nan if neither is. One printed run is m = 1.
    """
    spreads = [(ours, n - 1), (theirs, m - 1)]
    known = [(std, freedom) for std, freedom in spreads if freedom and not math.isnan(std)]
    if not known:
        return math.nan
    from scipy.special import stdtrit

    freedom = sum(freedom for _, freedom in known)
    std = math.sqrt(sum(freedom * std**2 for std, freedom in known) / freedom)
    t = float(stdtrit(freedom, (1 + _CONFIDENCE) / 2))
    return t * std * math.sqrt(1 / n + 1 / m) + _ROUNDING


def compare(
    table: PaperTable, wishes: Wishes, records: "Mapping[RunSettings, Record]"
) -> list[Number]:
    """All numbers of a table as printed and as measured by some runs.

    A measured one is the mean over its sets and the seeds that all of these have.
    """
    table, numbers = wishes.wished(table), list[Number]()
    for place, printed in cells(table, wishes).items():
        metrics = table.metrics_of(place)
        of = streams(table, place, wishes) if records else ()
        rivals = of and len(metrics) > len(table.metrics)
        base = streams(table, place._replace(row=table.base_row), wishes) if rivals else ()
        used = tuple(records[run] for runs in of for run in runs if run in records)
        for metric in metrics:
            number = Number(table, place, metric, printed.get(metric))
            by_set = _by_set(of, base if metric.endswith(LEAD) else (), records, metric)
            if any(by_set.values()):
                from zsntta_cli.results import frame  # it imports NumPy

                value, as_printed = frame.average(by_set), frame.average(by_set, frame.SETS)
                number = replace(number, measured=value, sets_std=as_printed.std, records=used)
            numbers.append(number)
    return numbers


def _by_set(
    of: Streams, base: Streams, records: "Mapping[RunSettings, Record]", metric: str
) -> dict[str, dict[int, float]]:
    """A metric in percent by the sets of streams and by seed, or how far it is above `base`'s."""
    name, found = metric.removesuffix(LEAD), dict[str, dict[int, float]]()
    for place, runs in enumerate(of):
        sets = f"{runs[0].id_set} {runs[0].ood_set or ''}".rstrip()
        by_seed = found.setdefault(sets, {})
        for run, other in zip(runs, base[place] if base else runs, strict=True):
            if run in records and other in records:
                lead = 100 * records[other].metric(name) if base else 0.0
                by_seed[run.stream.seed] = 100 * records[run].metric(name) - lead
    return found


def counts(numbers: Sequence[Number]) -> str:
    """Say how many numbers are measured, compared and marked."""
    measured = printed = compared = beyond = 0
    for number in numbers:
        measured += number.is_measured
        printed += number.printed is not None
        compared += not math.isnan(number.difference)
        beyond += number.is_beyond
    if not printed:
        return f"{measured:,} numbers measured, nothing is published of them"
    return f"{compared:,} of {printed:,} numbers compared, {beyond:,} marked !"
