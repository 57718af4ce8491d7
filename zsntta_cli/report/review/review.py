"""The review page: what is borderline, noise, clean, to be looked at and corrected.

Without script it is three lists as they were decided. With it a slider moves all thresholds by one
amount, which is `detect --flag N`; corrections are exported for `detect --judge`.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from zsntta_cli.detection.runs.detecting import Batch, DetectRun, RowSink
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.detection.verdicts import FORMAT, VerdictRow
from zsntta_cli.files import write_whole
from zsntta_cli.report.page.document import asset, document, footer
from zsntta_cli.report.page.markup import data, text
from zsntta_cli.report.review import EMBEDDED
from zsntta_cli.report.review.pictures import Picture, pictures
from zsntta_cli.report.verdicts import Tally, place

TITLE = "Review of verdicts"
_SHARE, _LEAST, _MOST = 10, 12, 60  # borderline: one in so many, at least and at most so many
# What the script is given of a row, and puts into a correction.
_COLUMNS = (
    "source", "frame", "class", "noise", "rank", "score", "threshold", "margin", "stage", "encoder",
)  # fmt: skip
_SECTIONS = {
    "borderline": ("Borderline", "Nearest to their thresholds, on either side, nearest first."),
    "noise": ("Noise", "Belongs to none of the classes; the most suspicious first."),
    "clean": ("Clean", "Belongs to the class that is named; the most suspicious first."),
}


def review(
    rows: Sequence[VerdictRow],
    classes: Sequence[str],
    tally: Tally,
    shown: Mapping[int, Picture] | None = None,
    hindsight: bool = True,
) -> str:
    """The page of verdict rows; `shown` are pictures by the places of rows that were judged.

    `tally` is of these rows; `hindsight`: whether the command could flag a number of images, as
    the slider does.

    The same rows and pictures give the same bytes.
    """
    judged = [row for row in rows if row["error"] is None]
    failed = [row for row in rows if row["error"] is not None]
    can_flag = hindsight and all(row["frame"] is None for row in judged)
    about = "".join(f"<p>{text(line)}</p>" for line in tally.lines())
    sections = "".join(_sections(judged, shown or {})) + _unreadable(failed)
    body = (
        f"<header><h1>{TITLE}</h1>{about}{_WORDS}</header>\n"
        f"{_contents(bool(failed))}<main>{_BAR}{sections}</main>\n{footer()}"
        f"{_data(judged, classes, can_flag)}"
    )
    script = asset(__package__, "review.js") + asset(__package__, "correcting.js")
    return document(TITLE, body, asset(__package__, "review.css"), script)


_WORDS = (
    "<p>The margin is an image's score less its threshold: above 0 it is called noise. Thresholds "
    "differ from image to image, so margins are what one image is compared with another by.</p>"
    '<p class="noscript">With scripts on, the threshold can be moved here, and verdicts corrected '
    "and exported.</p>\n"
)
_BAR = '<div id="controls" role="group" aria-label="What is shown" hidden></div>\n'


def _contents(has_failed: bool) -> str:
    names = {key: name for key, (name, _) in _SECTIONS.items()}
    names |= {"failed": "Not read"} if has_failed else {}
    links = "".join(f'<li><a href="#{key}">{name}</a>' for key, name in names.items())
    return f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n'


def _sections(rows: Sequence[VerdictRow], shown: Mapping[int, Picture]) -> Iterable[str]:
    """The lists as they were decided; each image stands in one of them."""
    near = by_closeness(rows)[: borderline(len(rows))]
    is_near = set(near)
    rest = [i for i in by_suspicion(rows) if i not in is_near]
    places = {
        "borderline": near,
        "noise": [i for i in rest if rows[i]["noise"]],
        "clean": [i for i in rest if not rows[i]["noise"]],
    }
    for key, (name, about) in _SECTIONS.items():
        cards = "".join(_card(i, rows[i], shown.get(i)) for i in places[key])
        yield (
            f'<section aria-labelledby="{key}"><h2 id="{key}">{name} '
            f"<small>{len(places[key]):,}</small></h2><p>{about}</p>\n<ol>{cards}</ol></section>\n"
        )


def _card(i: int, row: VerdictRow, picture: Picture | None) -> str:
    """An image with its verdict; what names it stands beside the picture, which needs no text."""
    drawn = (
        f'<img src="{picture.uri}" alt="" width="{picture.width}" height="{picture.height}">'
        if picture
        else '<span class="none">no picture</span>'
    )
    verdict = "noise" if row["noise"] else "clean"
    return (
        f'<li id="i{i}"><div class="of">{drawn}</div><p class="said"><b class="is-{verdict}">'
        f"{verdict}</b> <span>{_signed(row['margin'])}</span> <i>{text(row['class'])}</i></p>"
        f'<p class="where">{text(place(row))}</p>\n'
    )


def _signed(margin: float) -> str:
    return f"{margin:+.2f}".replace("-", "−")


def _unreadable(rows: Sequence[VerdictRow]) -> str:
    if not rows:
        return ""
    lines = "".join(f"<li>{text(place(row))}: {text(row['error'])}\n" for row in rows)
    return (
        f'<section aria-labelledby="failed"><h2 id="failed">Not read <small>{len(rows):,}</small>'
        f"</h2><p>These have no verdict.</p>\n<ul>{lines}</ul></section>\n"
    )


def _data(rows: Sequence[VerdictRow], classes: Sequence[str], can_flag: bool) -> str:
    """What the script works on: rows as lists, and a name for what is kept of corrections."""
    plain: list[dict[str, Any]] = [{**row} for row in rows]
    lists = [[row[name] for name in _COLUMNS] for row in plain]
    names = list(dict.fromkeys(classes))
    digest = hashlib.sha256(json.dumps([lists, names]).encode()).hexdigest()
    values = {
        "format": FORMAT, "id": digest, "columns": _COLUMNS, "rows": lists, "classes": names,
        "near": borderline(len(rows)), "flag": can_flag,
    }  # fmt: skip
    return data("review-data", values)


def by_suspicion(rows: Sequence[VerdictRow]) -> list[int]:
    """Places of rows (N,), the most suspicious first: what is called noise comes before the rest.

    Ranks of what was decided on arrival are among the images so far, and do not order all.
    """
    return sorted(range(len(rows)), key=lambda i: (not rows[i]["noise"], -rows[i]["margin"], i))


def by_closeness(rows: Sequence[VerdictRow]) -> list[int]:
    """Places of rows (N,), those nearest to their threshold first, on whichever side.

    Thresholds differ from image to image, so images are ordered by their margin.
    """
    return sorted(range(len(rows)), key=lambda i: (abs(rows[i]["margin"]), i))


def borderline(count: int) -> int:
    """How many of so many images are shown as borderline."""
    return min(count, max(_LEAST, min(_MOST, count // _SHARE)))


def pictured(rows: Sequence[VerdictRow], most: int) -> list[int]:
    """Places of the rows that get a picture: in turn the next borderline and suspicious one."""
    turns = zip_longest(by_closeness(rows), by_suspicion(rows))
    return list(dict.fromkeys(chain.from_iterable(turns)))[:most]


class ReviewFile(RowSink):
    """The page as a sink: a file that is absent or whole."""

    def __init__(self, path: Path, embed: int = EMBEDDED, workers: int = 1) -> None:
        self._path, self._embed, self._workers = path, embed, workers
        self._rows: list[VerdictRow] = []
        self._items: list[Item] = []  # of rows that were judged

    def open(self, run: DetectRun) -> None:
        """Take the names of the classes."""
        self._classes, self._tally = run.detector.class_names, Tally.of(run.detector)
        self._hindsight = not run.request.on_arrival

    def take(self, batch: Batch) -> None:
        """Take the next rows."""
        self._tally.add(batch.rows)
        self._rows += batch.rows
        self._items += [item for item, row in zip(*batch, strict=True) if row["error"] is None]

    def close(self) -> None:
        """Write it: StoreError where that cannot be done."""
        html = review(self._rows, self._classes, self._tally, self._pictures(), self._hindsight)
        write_whole(self._path, html.encode())

    def _pictures(self) -> dict[int, Picture]:
        """Pictures by the places of the rows that were judged."""
        judged = [row for row in self._rows if row["error"] is None]
        places = pictured(judged, self._embed)
        drawn = pictures([self._items[i] for i in places], self._workers)
        return {i: picture for i, picture in zip(places, drawn, strict=True) if picture}
