"""Kept runs as the page needs them: light, by the rules of today, as rows of the frame."""

import functools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from zsntta_cli.report.page.drawable import drawable
from zsntta_cli.results import frame
from zsntta_cli.results.curves import Curves
from zsntta_cli.results.frame import CLEAN, ResultRow, ResultTable, Stream, Value
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.ranking import Bits, bits_of
from zsntta_cli.simulation.metrics import METRICS, Metric
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.revision import revision

STOPPED = "†"  # behind a value of a run that was stopped


@dataclass(frozen=True, eq=False)
class PageRun:
    """One run."""

    record: Record
    kept_curves: Curves
    bits: Bits | None  # where its items were kept

    @functools.cached_property
    def curves(self) -> Curves:
        """Those that can be drawn."""
        return drawable(self.kept_curves)


@dataclass(frozen=True)
class PageRuns:
    """The runs of a page, and how many it leaves out."""

    runs: Sequence[PageRun]
    outdated: int  # of other rules or another revision of the method


def select_runs(kept: Iterable[Kept]) -> PageRuns:
    """The runs to show, each once: the later of two records, with the items of either."""
    twins: dict[Hashable, list[PageRun]] = {}
    outdated = 0
    current = functools.cache(revision)
    for each in kept:
        record = each.record
        if record.revision != (current(record.settings.method) or ""):
            outdated += 1
        else:
            run = PageRun(record, each.curves, bits_of(each.items) if each.items else None)
            twins.setdefault(frame.identity(record), []).append(run)
    return PageRuns([_merge(runs) for runs in twins.values()], outdated)


def _merge(runs: Sequence[PageRun]) -> PageRun:
    if len(runs) == 1:
        return runs[0]
    by_age = sorted(runs, key=lambda run: frame.age(run.record))
    bits = [run.bits for run in by_age if run.bits and not run.record.unfinished]
    return replace(by_age[-1], bits=by_age[-1].bits or (bits[-1] if bits else None))


RunRow = ResultRow[PageRun]


@dataclass(frozen=True, eq=False)
class PageRow:
    """A row of results on one OOD set, or on clean streams."""

    row: RunRow
    ood_set: str  # CLEAN of clean streams
    label: str  # the method and what sets it apart from its other rows

    @property
    def method(self) -> str:
        """Its name in METHODS."""
        return self.row.method

    @property
    def stream(self) -> Stream:
        """The stream that it saw, but for the ratio, the OOD set and the seed."""
        return self.row.stream

    @property
    def ratio(self) -> float:
        """The OOD share of its streams."""
        return self.row.ratio

    @property
    def first(self) -> PageRun:
        """Its run with the first seed, one that was finished if there is any."""
        runs = self.row.on(self.ood_set).values()
        return min(runs, key=lambda run: bool(run.record.unfinished))

    @property
    def main(self) -> Metric:
        """The metric that it is ranked by."""
        return METRICS["acc_h" if self.ratio else "acc_s"]

    def value(self, metric: str) -> Value:
        """A metric, folded over its seeds."""
        return self.row.value(self.ood_set, metric)


@dataclass(frozen=True, eq=False)
class PageTable:
    """All rows on one ID set by one encoder, with their names."""

    results: ResultTable[PageRun]

    @functools.cached_property
    def labels(self) -> dict[RunRow, str]:
        """How the rows are called: by method, and what sets them apart from each other."""
        names = frame.varying(self.results.rows)
        return {row: frame.label(row, names) for row in self.results.rows}

    @functools.cached_property
    def contests(self) -> list[list[PageRow]]:
        """The rows in groups that saw the same samples: by ratio, then by OOD set."""
        groups = sorted(self.results.contests(), key=lambda rows: (rows[0].ratio, rows[0].stream))
        return [
            [PageRow(row, ood_set, self.labels[row]) for row in rows if ood_set in row.runs]
            for rows in groups
            for ood_set in self.ood_sets(rows)
        ]

    def by_stream(self) -> dict[Stream, list[RunRow]]:
        """The rows by the kind of stream that they saw, by ratio."""
        groups: dict[Stream, list[RunRow]] = {}
        for row in sorted(self.results.rows, key=lambda row: row.ratio):
            groups.setdefault(row.stream, []).append(row)
        return groups

    def ood_sets(self, rows: Iterable[RunRow]) -> list[str]:
        """The OOD sets that some of its rows have, in order; CLEAN of clean streams."""
        present = {name for row in rows for name in row.runs}
        return [name for name in (*self.results.ood_sets, CLEAN) if name in present]


def page_tables(runs: Iterable[PageRun]) -> list[PageTable]:
    """The tables of a page: whatever the order of the runs, the same."""
    return [PageTable(table) for table in frame.tables(runs)]


def kind_of(stream: Stream) -> str:
    """In what a stream differs from the usual one, in words."""
    return ", ".join(f"{frame.setting_name(k)} {frame.shown(k, v)}" for k, v in stream.kind)


def features_of(stream: Stream) -> str:
    """Which of several features of the same names a stream has: 1.1.1 of those most runs have."""
    return ".".join(str(number + 1) for number in stream.features)


def name_of(stream: Stream) -> str:
    """What a table is of."""
    kind = [kind_of(stream)] * bool(stream.kind)
    other = f"OTHER FEATURES of the same name ({features_of(stream)})"
    return ", ".join(
        [f"ID: {stream.id_set}", stream.encoder, *kind, *[other] * any(stream.features)]
    )


def value_text(metric: Metric, value: Value) -> str:
    """A value as the page shows it; that of a run that was stopped has a mark."""
    is_stopped = not (value.is_whole or math.isnan(value.mean))
    return metric.text(value.mean, value.std) + STOPPED * is_stopped
