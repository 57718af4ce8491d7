"""Verdict rows to what people read: a table of the suspicious, and what is to be said of all."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table
from rich.text import Text

from zsntta_cli.detection.runs.rows import Row
from zsntta_cli.detection.verdicts import WARM_UP
from zsntta_cli.errors import printable
from zsntta_cli.methods import METHODS
from zsntta_cli.progress import console

SHOWN = 20  # images of a table


def suspicious(rows: Iterable[Row], most: int = SHOWN) -> list[Row]:
    """What is called noise, the most suspicious first, at most so many."""
    noise = [row for row in rows if row["noise"]]
    return sorted(noise, key=lambda row: row["rank"])[:most]


def table(rows: Sequence[Row]) -> Table:
    """Rows as a table: rank, margin, class, image."""
    drawn = Table(box=None, pad_edge=False)
    for head, options in _COLUMNS.items():
        drawn.add_column(head, **options)
    for row in rows:
        drawn.add_row(*(Text(printable(cell)) for cell in _cells(row)))
    return drawn


_COLUMNS: dict[str, dict[str, Any]] = {
    "rank": {"justify": "right", "no_wrap": True},
    "margin": {"justify": "right", "no_wrap": True},
    "nearest class": {"overflow": "ellipsis", "no_wrap": True, "max_width": 24},
    "image": {"overflow": "fold"},
}


def _cells(row: Row) -> tuple[str, ...]:
    return str(row["rank"]), f"{row['margin']:+.2f}", row["class"], place(row)


def place(row: Row) -> str:
    """Where an image is from: its path, and in a video its time."""
    return row["source"] + (f" at {row['time_s']:.2f} s" if row["time_s"] is not None else "")


def line(row: Row) -> str:
    """One row as a line, for what is decided as it comes."""
    if row["error"] is not None:
        return f"error  {place(row)}: {row['error']}"
    verdict = "noise" if row["noise"] else "clean"
    return f"{verdict}  {row['margin']:+.2f}  {row['class']}  {place(row)}"


def draw(rows: Sequence[Row]) -> str:
    """The table of the suspicious as text, drawn for the terminal."""
    screen = console()
    with screen.capture() as captured:
        if found := suspicious(rows):
            screen.print(table(found))
    return captured.get()


@dataclass
class Tally:
    """What is to be said of all rows."""

    method: str
    classes: int
    counts: Counter[str] = field(default_factory=Counter)
    first_error: str = ""
    drawn: bool = False  # whether a table shows the first of them

    def add(self, rows: Iterable[Row]) -> None:
        """Count rows."""
        for row in rows:
            self.counts["images"] += 1
            if row["error"] is not None:
                self.counts["errors"] += 1
                self.first_error = self.first_error or f"{place(row)}: {row['error']}"
            else:
                self.counts["noise"] += row["noise"]
                self.counts["warm-up"] += row["stage"] == WARM_UP

    def lines(self) -> list[str]:
        """What was found, and what cannot be known."""
        return [printable(one) for one in (self._found(), *self._unsure()) if one]

    def _found(self) -> str:
        counts, images = self.counts, _images(self.counts["images"])
        kinds = "1 class" if self.classes == 1 else f"{self.classes:,} classes"
        flagged = f"{images}, {counts['noise']:,} flagged as noise ({self.method}, {kinds})"
        if not counts["errors"]:
            return f"{flagged}."
        return f"{flagged}, {counts['errors']:,} not read, the first: {self.first_error}."

    def _unsure(self) -> Iterable[str]:
        judged = self.counts["images"] - self.counts["errors"]
        if warm := self.counts["warm-up"]:
            few = "All" if warm == judged else f"{warm:,} of {judged:,}"
            yield (
                f"{few} by ZS-CLIP's rule: before {warm_up(self.method):,} images {self.method} "
                f"cannot tell what is usual here."
            )
        if (noise := self.counts["noise"]) > SHOWN and self.drawn:
            yield f"Shown are the {SHOWN} most suspicious."
        if judged and not noise:
            yield "No sign of images beyond your classes."


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"


def warm_up(method: str) -> int:
    """How many images a method sees before its own rule decides."""
    return METHODS[method].warm_up.items(METHODS[method].settings())
