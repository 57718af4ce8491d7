"""Kept runs as the page needs them: by the current rules, as rows of the frame."""

import functools
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from zsntta_cli.results import frame
from zsntta_cli.results.frame import CLEAN, ResultRow, ResultStream, ResultTable
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.selection import current
from zsntta_cli.settings.ratios import ratio_place

STOPPED = "†"  # behind a value of a run that was stopped


@dataclass(frozen=True)
class PageRuns:
    """The runs of a page, and how many it leaves out."""

    runs: Sequence[Kept]
    left_out: Sequence[str]  # of other rules or another source of the method: how many, why


def select_runs(kept: Iterable[Kept]) -> PageRuns:
    """The runs to show, each once: the later of two records."""
    runs, left_out = current(list(kept))
    return PageRuns(frame.latest_of_each(runs), left_out)


RunRow = ResultRow[Kept]


@dataclass(frozen=True, eq=False)
class PageTable:
    """All rows on one ID set by one encoder, with their names."""

    results: ResultTable[Kept]

    @functools.cached_property
    def labels(self) -> dict[RunRow, str]:
        """The names of the rows where all are in one table."""
        return frame.labels(self.results.rows)

    def by_stream(self) -> dict[ResultStream, list[RunRow]]:
        """The rows by their kind of stream and by ratio."""
        groups: dict[ResultStream, list[RunRow]] = {}
        for row in sorted(self.results.rows, key=lambda row: ratio_place(row.ratio)):
            groups.setdefault(row.stream, []).append(row)
        return groups

    def ood_sets(self, rows: Iterable[RunRow]) -> list[str]:
        """The OOD sets of some rows, in order; CLEAN for clean streams."""
        present = {name for row in rows for name in row.runs}
        return [name for name in (*self.results.ood_sets, CLEAN) if name in present]


def page_tables(runs: Iterable[Kept]) -> list[PageTable]:
    """The tables of a page, independent of the order of the runs."""
    return [PageTable(table) for table in frame.tables(runs)]


def mean_seconds(runs: Collection[Kept]) -> float:
    """The mean seconds of a run, of the method alone."""
    return math.fsum(run.record.seconds for run in runs) / len(runs)
