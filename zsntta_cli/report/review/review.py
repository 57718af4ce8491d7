"""The review page: borderline, noise, unsure and clean images, to be looked at and corrected.

Without its script the page has lists of the decisions. With it a slider moves all thresholds by one
amount, as `detect --flag N` does; corrections are exported for `detect --learn`. The file has cards
for the first images of each list and for pictures that are in it; the script makes the others when
they are needed.
"""

import html
from collections.abc import Container, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import get_args

from markupsafe import Markup

from zsntta_cli.detection.detecting.run import Batch, DetectRun, RowSink
from zsntta_cli.detection.questions import nearest
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.detection.verdicts import CLEAN, JUDGED, NOISE, UNSURE, VerdictAnswer, VerdictRow
from zsntta_cli.errors import printable
from zsntta_cli.files import write_whole
from zsntta_cli.report.page.document import document
from zsntta_cli.report.review.data import page_data
from zsntta_cli.report.review.pictures import Picture, address, pictures
from zsntta_cli.report.verdicts import Tally

TITLE = "Review of verdicts"
ANSWERS = {NOISE: "does not belong", UNSURE: "unsure", CLEAN: "belongs"}  # as the page calls them
STEP = 120  # images of a list that are shown at once
QUESTIONS = 10
EMBEDDED = 600  # pictures that are in the page itself
_SHARE, _LEAST, _MOST = 10, 12, 60  # borderline: one in so many, at least and at most so many
_ORDER = get_args(VerdictAnswer)  # of suspicion
_SCRIPTS = (
    "review.js", "histogram.js", "asking.js", "correcting.js", "exporting.js", "zooming.js",
    "keys.js",
)  # fmt: skip


def review(
    rows: Sequence[VerdictRow],
    classes: Sequence[str],
    tally: Tally,
    shown: Mapping[int, Picture] | None = None,
    files: Mapping[int, str] | None = None,
    hindsight: bool = True,
) -> str:
    """The page of verdict rows; `shown` has pictures by the places of rows that were judged.

    `files` has the addresses of image files by the same places, relative to the page. `tally`
    counts these rows; `hindsight`: whether the command could flag a number of images, as the slider
    does.

    The same rows, pictures and addresses give the same bytes.
    """
    judged = [row for row in rows if row["error"] is None]
    lists, asked = _lists(judged), to_ask(judged) if hindsight else []
    shown, files = shown or {}, files or {}
    return document(
        __package__,
        "review",
        _SCRIPTS,
        images="data: 'self' file:",
        title=TITLE,
        tally=tally,
        rows=judged,
        lists=lists,
        asked=asked,
        shown=shown,
        files=files,
        carded={*shown, *asked, *(i for places in lists.values() for i in places[:STEP])},
        answers=ANSWERS,
        failed=[row for row in rows if row["error"] is not None],
        text=_text,
        data=page_data(
            judged, classes, files,
            near=borderline(len(judged)), step=STEP, answers=ANSWERS,
            flag=hindsight,
        ),
    )  # fmt: skip


def _text(value: str) -> Markup:
    """A text as HTML, with quotes escaped as in earlier reviews."""
    return Markup(html.escape(printable(value)))


def _lists(rows: Sequence[VerdictRow]) -> dict[str, list[int]]:
    """Places of rows in the lists as they were decided; each image is in one of them."""
    near = by_closeness(rows)[: borderline(len(rows))]
    is_near = set(near)
    rest = [i for i in by_suspicion(rows) if i not in is_near]
    return {
        "borderline": near,
        **{answer: [i for i in rest if rows[i]["answer"] == answer] for answer in _ORDER},
    }


def by_suspicion(rows: Sequence[VerdictRow]) -> list[int]:
    """Places of rows (N,), the most suspicious first: noise, then unsure, then clean ones.

    Ranks of images decided on arrival count only the images so far, so they do not order all.
    """
    keys = [(_ORDER.index(row["answer"]), -row["margin"]) for row in rows]
    return sorted(range(len(rows)), key=keys.__getitem__)


def by_closeness(rows: Sequence[VerdictRow]) -> list[int]:
    """Places of rows (N,), those nearest to their threshold first, on either side.

    Thresholds differ between images, so images are ordered by their margin.
    """
    return sorted(range(len(rows)), key=lambda i: (abs(rows[i]["margin"]), i))


def borderline(count: int) -> int:
    """How many of `count` images are shown as borderline."""
    return min(count, max(_LEAST, min(_MOST, count // _SHARE)))


def to_ask(rows: Sequence[VerdictRow], most: int = QUESTIONS) -> list[int]:
    """Places of rows that were not judged, those nearest to their threshold first.

    Of files with the same content one is asked about.
    """
    images = [row["content"] or row["source"] for row in rows]
    is_open = [row["stage"] != JUDGED for row in rows]
    return nearest([row["margin"] for row in rows], images, is_open)[:most]


def pictured(rows: Sequence[VerdictRow], most: int, files: Container[int] = ()) -> list[int]:
    """Places of the rows whose picture is in the page itself.

    Borderline and suspicious rows take turns; rows that have no file to show come first.
    """
    turns = zip_longest(by_closeness(rows), by_suspicion(rows))
    places = dict.fromkeys(chain.from_iterable(turns))
    return sorted(places, key=lambda i: i in files)[:most]


class ReviewFile(RowSink):
    """The page as a sink; its file is absent or whole."""

    def __init__(self, path: Path, embedded: int = EMBEDDED) -> None:
        """A page at a path; `embedded` pictures of it at most are in the page itself."""
        self._path, self._embedded = path, embedded
        self._rows: list[VerdictRow] = []
        self._items: list[Item] = []  # of rows that were judged

    def open(self, run: DetectRun) -> None:
        """Take the names of the classes."""
        self._classes, self._tally = run.detector.class_names, Tally.of(run)
        self._hindsight = not run.request.on_arrival

    def take(self, batch: Batch) -> None:
        """Take the next rows."""
        self._tally.add(batch.rows)
        self._rows += batch.rows
        self._items += [item for item, row in zip(*batch, strict=True) if row["error"] is None]

    def close(self) -> None:
        """Write the page; raise StoreError if that fails."""
        addresses = (address(item, self._path.parent) for item in self._items)
        files = {i: file for i, file in enumerate(addresses) if file is not None}
        judged = [row for row in self._rows if row["error"] is None]
        places = pictured(judged, self._embedded, files)
        drawn = pictures([self._items[i] for i in places])
        shown = {i: picture for i, picture in zip(places, drawn, strict=True) if picture}
        page = review(self._rows, self._classes, self._tally, shown, files, self._hindsight)
        write_whole(self._path, page.encode())
