"""The rows of a page: those of the frame, with their names, by stream and by OOD set."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from zsntta_cli.results import frame
from zsntta_cli.results.frame import CLEAN, ResultRow, ResultStream, ResultTable
from zsntta_cli.results.kept import Kept
from zsntta_cli.settings.ratios import ratio_place

STOPPED = "†"  # behind a value of a run that was stopped


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
