"""Verdict rows for people: a table of the suspicious ones, and a summary of all."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rich.table import Table
from rich.text import Text

from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection.detecting.run import DetectRun
from zsntta_cli.detection.flags import Flag
from zsntta_cli.detection.stepping import fewest_for
from zsntta_cli.detection.verdicts import ADAPTED, NOISE, UNSURE, WARM_UP, VerdictRow
from zsntta_cli.errors import counted, printable
from zsntta_cli.progress import console
from zsntta_cli.settings import is_tiny

SHOWN = 20  # images of a table
_FEW = 10  # images of which it is not said what most of them are
_REASONS = 5  # why images are not read, that one line names
_DEMONSTRATION = (
    "This is the embedded encoder: its verdicts are a demonstration, and a fifth of its own clean "
    "shapes are unsure. Without --model tiny a real one decides, ViT-B-16."
)
_DIGITS = 4  # of scores, which have deviations near 1: images that agree in them are alike


def suspicious(rows: Iterable[VerdictRow], most: int = SHOWN) -> list[VerdictRow]:
    """At most `most` flagged images, the most suspicious first: noise, then unsure."""
    flagged = [row for row in rows if row["answer"] in (NOISE, UNSURE)]
    return sorted(flagged, key=lambda row: (row["answer"] != NOISE, row["rank"]))[:most]


def draw(rows: Iterable[VerdictRow]) -> str:
    """The table of suspicious images, drawn for the terminal; empty if there are none."""
    table = Table(box=None, pad_edge=False)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("margin", justify="right", no_wrap=True)
    table.add_column("answer", no_wrap=True)
    table.add_column("nearest class", overflow="ellipsis", no_wrap=True, max_width=24)
    table.add_column("image", overflow="fold")
    for row in suspicious(rows):
        margin = f"{row['margin']:+.2f}"
        cells = str(row["rank"]), margin, row["answer"], row["class"], row["source"]
        table.add_row(*(Text(printable(cell)) for cell in cells))
    screen = console()
    with screen.capture() as captured:
        if table.rows:
            screen.print(table)
    return captured.get()


def line(row: VerdictRow) -> str:
    """One row as a line, for verdicts that are shown as they come."""
    if row["error"] is not None:
        return f"error  {row['source']}: {row['error']}"
    return f"{row['answer']}  {row['margin']:+.2f}  {row['class']}  {row['source']}"


@dataclass
class Tally:
    """The counts of all rows, and the sentences about them.

    Only an image's own evidence says that it is beyond the classes. The summary does not say so if
    the user's own flag decides, if the method has no evidence, or if fewer images differ than its
    own rule needs to begin (pictures that are all alike fit in with each other).
    """

    method: str
    classes: int
    warm_up: int  # images before the method's own rule decides
    hindsight: bool = True
    is_asked: bool = False  # a flag of one's own decides
    left_out: LeftOut = field(default_factory=LeftOut)  # of the folders that were looked through
    is_embedded: bool = False  # the encoder is the embedded one, whose evidence is worth nothing
    counts: Counter[str] = field(default_factory=Counter)  # by answer, and what else
    _unread: dict[str, list[str]] = field(default_factory=dict)  # places by the reason
    _done: Counter[str] = field(default_factory=Counter)  # what was done to read images, by note
    _contents: set[str] = field(default_factory=set)  # of images so far
    _different: set[float] = field(default_factory=set)  # scores, as many as matter

    @classmethod
    def of(cls, run: DetectRun) -> "Tally":
        """The tally for a run."""
        detector, request = run.detector, run.request
        is_asked = request.flag != Flag()
        numbers = len(detector.class_names), detector.warm_up
        is_embedded = is_tiny(run.encoding.name)
        return cls(
            detector.method, *numbers, not request.on_arrival, is_asked, run.left_out, is_embedded
        )

    def add(self, rows: Iterable[VerdictRow]) -> None:
        """Count rows."""
        for row in rows:
            self.counts["images"] += 1
            self._done.update(row["note"].split("; ") if row["note"] else ())
            self._add_content(row["content"])
            if row["error"] is not None:
                self.counts["errors"] += 1
                reason = row["error"].removesuffix(f": {row['source']}")
                self._unread.setdefault(reason, []).append(row["source"])
            else:
                self._add_judged(row)

    def _add_content(self, content: str | None) -> None:
        self.counts["equal"] += content in self._contents
        if content:
            self._contents.add(content)

    def _add_judged(self, row: VerdictRow) -> None:
        self.counts[row["answer"]] += 1
        self.counts["warm-up"] += row["stage"] == WARM_UP
        if len(self._different) < self.warm_up:
            self._different.add(round(row["score"], _DIGITS))
        if row["evidence"] is not None and row["level"] is not None:
            self.counts["measured"] += row["stage"] == ADAPTED
            self.counts["unfit"] += row["evidence"] < row["level"]

    def lines(self, shown: int = 0, is_page: bool = False) -> list[str]:
        """What was decided, and what cannot be known.

        `shown` is how many rows a table shows at most; `is_page`: the text is part of the review.
        """
        embedded = [_DEMONSTRATION] if self.is_embedded else []
        counts = [self._flagged(is_page)]
        texts = counts + embedded if is_page else embedded + counts
        texts += [*self._why_unread(), *self._notes()]
        texts += [*self._unknown(shown), *self._evidence()]
        if unsure := self.counts[UNSURE]:
            doubt = "1 is doubtful" if unsure == 1 else f"{unsure:,} are doubtful"
            see = "it" if unsure == 1 else "them"
            texts.append(f"{doubt}." if is_page else f"{doubt}: see {see} with --review.")
        if left_out := self.left_out.words():
            read_with = ": --all-folders reads folders, too" if self.left_out.folders else ""
            texts.append(f"Left out: {left_out}{read_with}.")
        texts += self._sum_of_files()
        return [printable(text) for text in texts]

    def _flagged(self, is_page: bool) -> str:
        counts, images = self.counts, counted(self.counts["images"], "image")
        classes = counted(self.classes, "class", "classes")
        unsure = f", {counts[UNSURE]:,} unsure" if counts[UNSURE] else ""
        noise, by = "flagged as noise", f" ({self.method}, {classes})"
        if is_page:
            noise, by = "do not belong (noise)", f"; decided by {self.method} with {classes}"
        unread = f", {counts['errors']:,} not read" if counts["errors"] else ""
        return f"{images}, {counts[NOISE]:,} {noise}{unsure}{by}{unread}."

    def _why_unread(self) -> Iterator[str]:
        """Why images could not be read: each reason with its number and the first of its images."""
        if not self._unread:
            return
        by_number = sorted(self._unread.items(), key=lambda pair: -len(pair[1]))
        reasons = [
            f"{reason} ({counted(len(places), 'file')}, the first {places[0]})"
            for reason, places in by_number[:_REASONS]
        ]
        if more := by_number[_REASONS:]:
            reasons.append(f"{sum(len(places) for _, places in more):,} for other reasons")
        yield f"Not read: {'; '.join(reasons)}."

    def _sum_of_files(self) -> Iterator[str]:
        """The files that were found, and what became of them."""
        again, left = self.left_out.again, self.left_out.files
        unread = self.counts["errors"]
        if not again + left:
            return
        parts = {
            "judged": self.judged, "not read": unread, "given again": again, "left out": left,
        }  # fmt: skip
        said = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
        yield f"{counted(sum(parts.values()), 'file')}: {said}."

    def _notes(self) -> Iterator[str]:
        """What was done to read images, and how many have the content of another."""
        for note, count in self._done.items():
            yield f"note: {counted(count, 'image')}: {note}."
        if equal := self.counts["equal"]:
            copies = (
                "1 image is a copy of another"
                if equal == 1
                else (f"{equal:,} images are copies of others")
            )
            yield f"note: {copies}, byte by byte: an answer about one is an answer about all."

    def _unknown(self, shown: int) -> Iterator[str]:
        if warm := self.counts["warm-up"]:
            few = "All" if warm == self.judged else f"{warm:,} of {self.judged:,}"
            first = f"before {self.warm_up:,}"
            if self.hindsight:
                first = f"of fewer than {fewest_for(self.warm_up):,}"
            yield (
                f"{few} by ZS-CLIP's rule: {first} images {self.method} cannot tell what is "
                f"usual here."
            )
        if self.counts[NOISE] + self.counts[UNSURE] > shown > 0:
            yield f"Shown are the {shown} most suspicious."

    def _evidence(self) -> Iterator[str]:
        """What is to be said of the folder as a whole."""
        if self.is_asked or self.is_embedded:
            return
        if self.judged < _FEW:
            pass
        elif 2 * self.counts["unfit"] > self.judged and self.hindsight:
            yield (
                "Most images show none of your classes. Ranks are by how well an image fits one: "
                "those that fit best come last."
            )
        elif 2 * (self.counts[NOISE] + self.counts[UNSURE]) > self.judged:
            yield "Most images do not seem to be of your classes."
        if not self.counts["measured"]:
            return
        if len(self._different) < self.warm_up:
            yield (
                f"Fewer than {self.warm_up:,} images differ: too few to be sure what is beyond "
                f"your classes."
            )
            return
        if not self.counts[NOISE]:
            yield "Every image fits one of your classes better than other words."

    @property
    def judged(self) -> int:
        """How many images have a verdict."""
        return self.counts["images"] - self.counts["errors"]
