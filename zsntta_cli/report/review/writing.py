"""The review as a file: what is taken while images are decided, and written at the end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zsntta_cli.detection.runs.detecting import Batch
from zsntta_cli.detection.runs.rows import Row
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.files import write_whole
from zsntta_cli.report.review import EMBEDDED
from zsntta_cli.report.review.ordering import pictured
from zsntta_cli.report.review.pictures import Picture, pictures
from zsntta_cli.report.review.review import review


@dataclass
class ReviewFile:
    """A page that is absent or whole: it appears at the end."""

    path: Path
    embed: int = EMBEDDED  # pictures at most
    workers: int = 1  # threads that read them
    _rows: list[Row] = field(default_factory=list)
    _items: list[Item] = field(default_factory=list)  # of rows that were judged

    def take(self, batch: Batch) -> None:
        """Take more rows."""
        self._rows += batch.rows
        self._items += [item for item, row in zip(*batch, strict=True) if row["error"] is None]

    def close(self, classes: Sequence[str], method: str, hindsight: bool) -> None:
        """Write it.

        Raises:
            StoreError: that cannot be done.
        """
        shown = self._pictures()
        html = review(self._rows, classes, method, shown, hindsight)
        write_whole(self.path, html.encode())

    def _pictures(self) -> dict[int, Picture]:
        judged = [row for row in self._rows if row["error"] is None]
        places = pictured(judged, self.embed)
        found: Iterable[Picture | None] = pictures([self._items[i] for i in places], self.workers)
        return {i: one for i, one in zip(places, found, strict=True) if one}
