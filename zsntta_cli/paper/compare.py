"""Measured numbers of a table beside its printed ones: the difference, and what seeds explain.

This module does not import NumPy.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
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
        from zsntta_cli.simulation.notes import OTHER_IMAGES  # it imports NumPy

        return any(note.kind == OTHER_IMAGES for record in self.records for note in record.notes)

    @property
    def most(self) -> float:
        """The largest difference that seeds explain; nan if no spread is known.

        The ± that the paper prints of an average is not the average's, so that is left out.
        """
        if self.measured is None or self.printed is None or math.isnan(self.difference):
            return math.nan
        theirs = None if self.place.ood_set == AVERAGE else self.printed.std
        std = math.nan if theirs is None else theirs
        return explained(self.measured.std, len(self.measured.seeds), std, self.table.seeds)

    @property
    def is_beyond(self) -> bool:
        """Whether seeds do not explain the difference; misprints and other images say nothing."""
        if math.isnan(self.most) or self.printed is None:
            return False
        is_beyond = abs(self.difference) > self.most + 1e-9
        return is_beyond and not (self.printed.is_misprint or self.is_of_other_images)


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
    """All numbers of a table, as measured by some runs and as printed."""
    table = wishes.wished(table)
    return [
        replace(number, printed=printed.get(number.metric))
        for place, printed in cells(table, wishes).items()
        for number in _measured(table, place, wishes, records)
    ]


def _measured(
    table: PaperTable, place: Place, wishes: Wishes, records: "Mapping[RunSettings, Record]"
) -> Iterator[Number]:
    """The numbers at a place, each the mean over its sets and the seeds that all of these have."""
    of = streams(table, place, wishes) if records else ()
    used = tuple(records[run] for of_set in of for run in of_set if run in records)
    for metric in table.metrics_of(place):
        number, by_set = Number(table, place, metric), _by_set(of, records, metric)
        if metric.endswith(LEAD) and of:
            row = next(name for name, of in table.rows.items() if of["method"] == "zs-clip")
            base = _by_set(streams(table, place._replace(row=row), wishes), records, metric)
            by_set = {name: _minus(by_seed, base.get(name, {})) for name, by_seed in by_set.items()}
        if any(by_set.values()):
            from zsntta_cli.results import frame  # it imports NumPy

            value, as_printed = frame.average(by_set), frame.average(by_set, frame.SETS)
            number = replace(number, measured=value, sets_std=as_printed.std, records=used)
        yield number


def _by_set(
    of: Streams, records: "Mapping[RunSettings, Record]", metric: str
) -> dict[str, dict[int, float]]:
    """A metric in percent by the sets of a stream and by seed, for the runs that have records."""
    name = metric.removesuffix(LEAD)
    return {
        " ".join(filter(None, (runs[0].id_set, runs[0].ood_set))): {
            run.stream.seed: 100 * records[run].metric(name) for run in runs if run in records
        }
        for runs in of
    }


def _minus(by_seed: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return {seed: by_seed[seed] - other[seed] for seed in by_seed if seed in other}


def counts(numbers: Sequence[Number]) -> str:
    """Say how many numbers are measured, compared and marked."""
    measured = sum(number.is_measured for number in numbers)
    printed = sum(number.printed is not None for number in numbers)
    if not printed:
        return f"{measured:,} numbers measured, nothing is published of them"
    compared = sum(not math.isnan(number.difference) for number in numbers)
    beyond = sum(number.is_beyond for number in numbers)
    return f"{compared:,} of {printed:,} numbers compared, {beyond:,} marked !"
