"""Verdict rows for people: a table of the suspicious ones, and a summary of all."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection.detector import fewest_for
from zsntta_cli.detection.run import DetectRun
from zsntta_cli.detection.verdicts import ADAPTED, NOISE, UNSURE, WARM_UP, Row
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


def suspicious(rows: Iterable[Row], most: int = SHOWN) -> list[Row]:
    """At most `most` flagged images, the most suspicious first: noise, then unsure."""
    flagged = [row for row in rows if row["answer"] in (NOISE, UNSURE)]
    return sorted(flagged, key=lambda row: (row["answer"] != NOISE, row["rank"]))[:most]


def draw(rows: Iterable[Row]) -> str:
    """The table of suspicious images, drawn for the terminal; empty if there are none."""
    from rich.table import Table
    from rich.text import Text

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


def line(row: Row) -> str:
    """One row as a line, for verdicts that are shown as they come."""
    if row["error"] is not None:
        return f"error  {row['source']}: {row['error']}"
    return f"{row['answer']}  {row['margin']:+.2f}  {row['class']}  {row['source']}"


@dataclass(frozen=True)
class Facts:
    """What is known of a run beside its rows."""

    method: str
    classes: int
    warm_up: int  # images before the method's own rule decides
    hindsight: bool = True
    is_asked: bool = False  # a flag of one's own decides
    left_out: LeftOut = field(default_factory=LeftOut)  # of the folders that were looked through
    is_embedded: bool = False  # the encoder is the embedded one, whose evidence is worth nothing

    @classmethod
    def of(cls, run: DetectRun) -> "Facts":
        """The facts of a run."""
        detector, request = run.detector, run.request
        return cls(
            detector.method, len(detector.names), detector.warm_up, not request.on_arrival,
            request.flag is not None, run.left_out, is_tiny(run.encoding.name),
        )  # fmt: skip


def summary(rows: Sequence[Row], facts: Facts, shown: int = 0, is_page: bool = False) -> list[str]:
    """What was decided, what was not read and why, and what cannot be known.

    `shown` is how many rows a table shows at most; `is_page`: the text is part of the review.
    """
    judged = [row for row in rows if row["error"] is None]
    answers = Counter(row["answer"] for row in judged)
    embedded = [_DEMONSTRATION] if facts.is_embedded else []
    counts = [_counts(len(rows), len(judged), answers, facts, is_page)]
    lines = counts + embedded if is_page else embedded + counts
    lines += [*_why_unread(rows), *_notes(rows), *_by_zs_clip(judged, facts)]
    if answers[NOISE] + answers[UNSURE] > shown > 0:
        lines.append(f"Shown are the {shown} most suspicious.")
    lines += _of_the_whole(judged, answers, facts)
    if unsure := answers[UNSURE]:
        doubt = "1 is doubtful" if unsure == 1 else f"{unsure:,} are doubtful"
        see = "it" if unsure == 1 else "them"
        lines.append(f"{doubt}." if is_page else f"{doubt}: see {see} with --review.")
    left_out = facts.left_out
    if words := left_out.words():
        read_with = ": --all-folders reads folders, too" if left_out.folders else ""
        lines.append(f"Left out: {words}{read_with}.")
    if left_out.again + left_out.files:
        parts = {
            "judged": len(judged), "not read": len(rows) - len(judged),
            "given again": left_out.again, "left out": left_out.files,
        }  # fmt: skip
        said = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
        lines.append(f"{counted(sum(parts.values()), 'file')}: {said}.")
    return [printable(text) for text in lines]


def _counts(images: int, judged: int, answers: Counter[str], facts: Facts, is_page: bool) -> str:
    classes = counted(facts.classes, "class", "classes")
    noise, by = "flagged as noise", f" ({facts.method}, {classes})"
    if is_page:
        noise, by = "do not belong (noise)", f"; decided by {facts.method} with {classes}"
    unsure = f", {answers[UNSURE]:,} unsure" if answers[UNSURE] else ""
    unread = f", {images - judged:,} not read" if images > judged else ""
    return f"{counted(images, 'image')}, {answers[NOISE]:,} {noise}{unsure}{by}{unread}."


def _why_unread(rows: Sequence[Row]) -> Iterator[str]:
    """Why images could not be read: each reason with its number and the first of its images."""
    places = defaultdict[str, list[str]](list)
    for row in rows:
        if row["error"] is not None:
            places[row["error"].removesuffix(f": {row['source']}")].append(row["source"])
    by_number = sorted(places.items(), key=lambda pair: -len(pair[1]))
    reasons = [
        f"{reason} ({counted(len(sources), 'file')}, the first {sources[0]})"
        for reason, sources in by_number[:_REASONS]
    ]
    if more := by_number[_REASONS:]:
        reasons.append(f"{sum(len(sources) for _, sources in more):,} for other reasons")
    if reasons:
        yield f"Not read: {'; '.join(reasons)}."


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """What was done to read images, and how many have the content of another."""
    done = Counter(note for row in rows if row["note"] for note in row["note"].split("; "))
    for note, count in done.items():
        yield f"note: {counted(count, 'image')}: {note}."
    contents = [row["content"] for row in rows if row["content"]]
    if equal := len(contents) - len({*contents}):
        copies = "1 image is a copy of another"
        copies = copies if equal == 1 else f"{equal:,} images are copies of others"
        yield f"note: {copies}, byte by byte: an answer about one is an answer about all."


def _by_zs_clip(judged: Sequence[Row], facts: Facts) -> Iterator[str]:
    """How many images ZS-CLIP's rule decided, if any."""
    warm = sum(row["stage"] == WARM_UP for row in judged)
    if warm:
        few = "All" if warm == len(judged) else f"{warm:,} of {len(judged):,}"
        first = f"before {facts.warm_up:,}"
        if facts.hindsight:
            first = f"of fewer than {fewest_for(facts.warm_up):,}"
        yield (
            f"{few} by ZS-CLIP's rule: {first} images {facts.method} cannot tell what is usual "
            f"here."
        )


def _of_the_whole(judged: Sequence[Row], answers: Counter[str], facts: Facts) -> Iterator[str]:
    """What is to be said of the folder as a whole.

    Only an image's own evidence says that it is beyond the classes. Nothing is said of it if the
    user's own flag decides, if the method has no evidence, or if fewer images differ than its own
    rule needs to begin (pictures that are all alike fit in with each other).
    """
    if facts.is_asked or facts.is_embedded:
        return
    known = [row for row in judged if row["evidence"] is not None and row["level"] is not None]
    unfit = sum(row["evidence"] < row["level"] for row in known)
    if len(judged) < _FEW:
        pass
    elif 2 * unfit > len(judged) and facts.hindsight:
        yield (
            "Most images show none of your classes. Ranks are by how well an image fits one: those "
            "that fit best come last."
        )
    elif 2 * (answers[NOISE] + answers[UNSURE]) > len(judged):
        yield "Most images do not seem to be of your classes."
    if not any(row["stage"] == ADAPTED for row in known):
        return
    if len({round(row["score"], _DIGITS) for row in judged}) < facts.warm_up:
        yield (
            f"Fewer than {facts.warm_up:,} images differ: too few to be sure what is beyond your "
            f"classes."
        )
    elif not answers[NOISE]:
        yield "Every image fits one of your classes better than other words."
