"""Verdict rows to what people read: a table of the suspicious, and what is to be said of all."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.table import Table
from rich.text import Text

from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.verdicts import WARM_UP, VerdictRow
from zsntta_cli.errors import printable
from zsntta_cli.progress import console

SHOWN = 20  # images of a table


def suspicious(rows: Iterable[VerdictRow], most: int = SHOWN) -> list[VerdictRow]:
    """What is called noise, the most suspicious first, at most so many."""
    noise = [row for row in rows if row["noise"]]
    return sorted(noise, key=lambda row: row["rank"])[:most]


def draw(rows: Iterable[VerdictRow]) -> str:
    """The table of the suspicious as text, drawn for the terminal; nothing where none is."""
    table = Table(box=None, pad_edge=False)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("margin", justify="right", no_wrap=True)
    table.add_column("nearest class", overflow="ellipsis", no_wrap=True, max_width=24)
    table.add_column("image", overflow="fold")
    for row in suspicious(rows):
        cells = str(row["rank"]), f"{row['margin']:+.2f}", row["class"], place(row)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    screen = console()
    with screen.capture() as captured:
        if table.rows:
            screen.print(table)
    return captured.get()


def place(row: VerdictRow) -> str:
    """Where an image is from: its path, and in a video its time."""
    return row["source"] + (f" at {row['time_s']:.2f} s" if row["time_s"] is not None else "")


def line(row: VerdictRow) -> str:
    """One row as a line, for what is decided as it comes."""
    if row["error"] is not None:
        return f"error  {place(row)}: {row['error']}"
    verdict = "noise" if row["noise"] else "clean"
    return f"{verdict}  {row['margin']:+.2f}  {row['class']}  {place(row)}"


@dataclass
class Tally:
    """What is to be said of all rows."""

    method: str
    classes: int
    warm_up: int  # images before the method's own rule decides
    counts: Counter[str] = field(default_factory=Counter)
    first_error: str = ""

    @classmethod
    def of(cls, detector: OnlineDetector) -> "Tally":
        """The tally of what a detector is to decide."""
        return cls(detector.method, len(detector.class_names), detector.warm_up)

    def add(self, rows: Iterable[VerdictRow]) -> None:
        """Count rows."""
        for row in rows:
            self.counts["images"] += 1
            if row["error"] is not None:
                self.counts["errors"] += 1
                self.first_error = self.first_error or f"{place(row)}: {row['error']}"
            else:
                self.counts["noise"] += row["noise"]
                self.counts["warm-up"] += row["stage"] == WARM_UP

    def lines(self, shown: int = 0) -> list[str]:
        """What was found, and what cannot be known; a table shows so many of them at most."""
        return [printable(text) for text in (self._flagged(), *self._unsure(shown))]

    def _flagged(self) -> str:
        counts, images = self.counts, count_images(self.counts["images"])
        classes = "1 class" if self.classes == 1 else f"{self.classes:,} classes"
        flagged = f"{images}, {counts['noise']:,} flagged as noise ({self.method}, {classes})"
        if not counts["errors"]:
            return f"{flagged}."
        return f"{flagged}, {counts['errors']:,} not read, the first: {self.first_error}."

    def _unsure(self, shown: int) -> Iterable[str]:
        judged = self.counts["images"] - self.counts["errors"]
        if warm := self.counts["warm-up"]:
            few = "All" if warm == judged else f"{warm:,} of {judged:,}"
            yield (
                f"{few} by ZS-CLIP's rule: before {self.warm_up:,} images {self.method} "
                f"cannot tell what is usual here."
            )
        if self.counts["noise"] > shown > 0:
            yield f"Shown are the {shown} most suspicious."
        if judged and not self.counts["noise"]:
            yield "No sign of images beyond your classes."


def count_images(count: int) -> str:
    """So many images, in words."""
    return "1 image" if count == 1 else f"{count:,} images"
