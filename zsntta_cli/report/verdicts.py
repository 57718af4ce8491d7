"""Verdict rows for people and programs: a table of suspicious images, a summary, files."""

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection.detector import fewest_for
from zsntta_cli.detection.run import DetectRun
from zsntta_cli.detection.verdicts import ADAPTED, FIELDS, NOISE, UNSURE, WARM_UP, Row
from zsntta_cli.errors import StoreError, counted, printable
from zsntta_cli.files import whole_file, write_whole
from zsntta_cli.progress import console
from zsntta_cli.settings import is_tiny

SHOWN = 20  # images of a table
_FEW = 10  # images of which it is not said what most of them are
_REASONS = 5  # why images are not read, that one line names
_DEMONSTRATION = (
    "This is the embedded encoder: its verdicts are a demonstration, and a fifth of its own clean "
    "shapes are unsure. Omit --model tiny to use a real one, ViT-B-16."
)
_DIGITS = 4  # of scores, which have deviations near 1: images that agree in them are alike
FORMS = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet"}  # of files of rows
_NUMBERS = ("score", "threshold", "margin", "evidence", "level")


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


# What is said of all rows.


@dataclass(frozen=True)
class Facts:
    """What is known about a run besides its rows."""

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
    noise, unsure, unread = answers[NOISE], answers[UNSURE], len(rows) - len(judged)
    classes = counted(facts.classes, "class", "classes")
    flagged = "do not belong (noise)" if is_page else "flagged as noise"
    decided = "; decided by {} with {}" if is_page else " ({}, {})"
    by = decided.format(facts.method, classes)
    doubt, failed = f", {unsure:,} unsure" * (unsure > 0), f", {unread:,} not read" * (unread > 0)
    lines = [f"{counted(len(rows), 'image')}, {noise:,} {flagged}{doubt}{by}{failed}."]
    if facts.is_embedded:
        lines.insert(is_page, _DEMONSTRATION)
    lines += _on_reading(rows)
    if warm := sum(row["stage"] == WARM_UP for row in judged):
        few = "All" if warm == len(judged) else f"{warm:,} of {len(judged):,}"
        first = f"from fewer than {fewest_for(facts.warm_up):,}"
        first = first if facts.hindsight else f"before {facts.warm_up:,}"
        what = f"images {facts.method} cannot tell what is usual here"
        lines.append(f"{few} decided by ZS-CLIP's rule: {first} {what}.")
    if noise + unsure > shown > 0:
        lines.append(f"The {shown} most suspicious are shown.")
    if not (facts.is_asked or facts.is_embedded):
        lines += _of_the_whole(judged, noise, unsure, facts)
    if unsure:
        see = f": see {'it' if unsure == 1 else 'them'} with --review" * (not is_page)
        lines.append(f"{counted(unsure, 'is', 'are')} doubtful{see}.")
    left_out = facts.left_out
    if words := left_out.words():
        read_with = ": --all-folders reads folders, too" if left_out.folders else ""
        lines.append(f"Left out: {words}{read_with}.")
    if left_out.again + left_out.files:
        parts = {
            "judged": len(judged), "not read": unread, "given again": left_out.again,
            "left out": left_out.files,
        }  # fmt: skip
        parts_of = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
        lines.append(f"{counted(sum(parts.values()), 'file')}: {parts_of}.")
    return [printable(text) for text in lines]


def _on_reading(rows: Sequence[Row]) -> Iterator[str]:
    """Why images could not be read, what was done to read others, how many are copies."""
    places, notes, contents = defaultdict[str, list[str]](list), Counter[str](), Counter[str]()
    for row in rows:
        if row["error"] is not None:
            places[row["error"].removesuffix(f": {row['source']}")].append(row["source"])
        notes.update(row["note"].split("; ") if row["note"] else ())
        contents.update([row["content"]] if row["content"] else ())
    by_number = sorted(places.items(), key=lambda pair: -len(pair[1]))
    reasons = [
        f"{reason} ({counted(len(sources), 'file')}, the first {sources[0]})"
        for reason, sources in by_number[:_REASONS]
    ]
    if more := sum(len(sources) for _, sources in by_number[_REASONS:]):
        reasons.append(f"{more:,} for other reasons")
    if reasons:
        yield f"Not read: {'; '.join(reasons)}."
    for note, count in notes.items():
        yield f"note: {counted(count, 'image')}: {note}."
    if equal := contents.total() - len(contents):
        copies = counted(equal, "image is a copy of another", "images are copies of others")
        yield f"note: {copies}, byte for byte: an answer about one applies to all."


def _of_the_whole(judged: Sequence[Row], noise: int, unsure: int, facts: Facts) -> Iterator[str]:
    """What is to be said of the folder as a whole, if its method has evidence.

    Only an image's own evidence says that it is beyond the classes. Nothing is said of it if fewer
    images differ than the method's rule needs to begin (pictures that are all alike fit in with
    each other).
    """
    with_evidence = [
        row for row in judged if row["evidence"] is not None and row["level"] is not None
    ]
    unfit = sum(row["evidence"] < row["level"] for row in with_evidence)
    if len(judged) >= _FEW and 2 * unfit > len(judged) and facts.hindsight:
        yield (
            "Most images show none of your classes. Ranks are by how well an image fits one: those "
            "that fit best come last."
        )
    elif len(judged) >= _FEW and 2 * (noise + unsure) > len(judged):
        yield "Most images do not seem to belong to your classes."
    if not any(row["stage"] == ADAPTED for row in with_evidence):
        return
    if len({round(row["score"], _DIGITS) for row in judged}) < facts.warm_up:
        few = f"Fewer than {facts.warm_up:,} images differ"
        yield f"{few}: too few to be sure what is outside your classes."
    elif not noise:
        yield "Every image fits one of your classes better than other words."


# Files, each absent or whole.


def check_form(path: Path | None) -> None:
    """Refuse, before the work starts, a file whose library is missing; StoreError says which."""
    if path and path.suffix.lower() == ".parquet" and not find_spec("pyarrow"):
        raise StoreError(f"{path} is Parquet: type pip install 'zsntta[parquet]'")


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows to a file by its ending, one of FORMS.

    Raises:
        StoreError: writing fails; what was at the path before is still there.
    """
    form = path.suffix.lower()
    if form != ".parquet":
        write_whole(path, json_lines(rows) if form == ".jsonl" else csv_lines(rows))
        return
    import pyarrow
    import pyarrow.parquet

    plain = [  # bytes of a path that are not UTF-8 are escaped, as Parquet needs
        {**row, "source": row["source"].encode(errors="backslashreplace").decode()} for row in rows
    ]
    types = dict.fromkeys(FIELDS, pyarrow.string())
    types |= dict.fromkeys(("format", "class_index", "rank"), pyarrow.int64())
    types |= dict.fromkeys(_NUMBERS, pyarrow.float64())
    likely = pyarrow.struct([("class", pyarrow.string()), ("score", pyarrow.float64())])
    types |= {"noise": pyarrow.bool_(), "top": pyarrow.list_(likely)}
    table = pyarrow.Table.from_pylist(plain, schema=pyarrow.schema(types))
    with whole_file(path) as temporary:
        pyarrow.parquet.write_table(table, temporary)


def json_lines(rows: Sequence[Row]) -> bytes:
    """Rows as JSON Lines in plain ASCII; names of any bytes are escaped."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def csv_lines(rows: Sequence[Row]) -> bytes:
    """Rows as CSV with a head; lists are JSON, None is empty."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(FIELDS)
    for row in rows:
        values = [row[name] for name in FIELDS]
        lines.writerow([json.dumps(v) if isinstance(v, bool | list) else v for v in values])
    return text.getvalue().encode(errors="surrogateescape")
