"""The review page: borderline, noise, unsure and clean images, to be checked and corrected.

Without its script the page has lists of the decisions. With it, a slider moves all thresholds by
the same amount, as `detect --flag N` does, and corrections are exported for `detect --learn`. The
file has cards for the first images of each list and for pictures that are in it; the script makes
the others when they are needed.
"""

import base64
import hashlib
import html
import io
import json
import os
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from PIL import Image, features

from zsntta_cli.datasets.decoding import as_shown
from zsntta_cli.detection.sources import Photo
from zsntta_cli.detection.verdicts import ANSWERS, CLEAN, FORMAT, JUDGED, NOISE, UNSURE, Row
from zsntta_cli.errors import printable
from zsntta_cli.files import write_whole
from zsntta_cli.report.page.document import document
from zsntta_cli.report.verdicts import Facts, summary

TITLE = "Review of verdicts"
NAMED = {NOISE: "does not belong", UNSURE: "unsure", CLEAN: "belongs"}  # answers on the page
STEP = 120  # images of a list that are shown at once
QUESTIONS = 10
EMBEDDED = 600  # pictures that are in the page itself
_SHARE, _LEAST, _MOST = 10, 12, 60  # borderline: one in so many, at least and at most so many
SIDE = 256  # pixels, the longer side
_FORMAT = "WEBP" if features.check("webp") else "JPEG"
_QUALITY = 72
# What browsers draw. HEIC, TIFF, JPEG 2000 and JPEG XL are not among it.
_DRAWN = {".jpg", ".jpeg", ".jfif", ".png", ".apng", ".gif", ".webp", ".bmp", ".avif"}
# What the script has of each row, and puts into a correction.
_COLUMNS = (
    "source", "content", "class", "answer", "noise", "rank", "score", "threshold",
    "margin", "stage", "evidence", "level", "encoder",
)  # fmt: skip


class Picture(NamedTuple):
    """A small picture, and its width and height in pixels."""

    uri: str
    width: int
    height: int


def write_review(
    path: Path, pairs: Sequence[tuple[Photo, Row]], classes: Sequence[str], facts: Facts
) -> None:
    """Write the page of all images of a run with their rows, completely or not at all.

    Raises:
        StoreError: writing fails.
    """
    judged = [(photo, row) for photo, row in pairs if row["error"] is None]
    addresses = (address(photo, path.parent) for photo, _ in judged)
    files = {i: file for i, file in enumerate(addresses) if file is not None}
    places = pictured([row for _, row in judged], EMBEDDED, files)
    drawn = pictures([judged[i][0] for i in places])
    by_place = {i: picture for i, picture in zip(places, drawn, strict=True) if picture}
    write_whole(path, review([row for _, row in pairs], classes, facts, by_place, files).encode())


def review(
    rows: Sequence[Row],
    classes: Sequence[str],
    facts: Facts,
    shown: Mapping[int, Picture],
    files: Mapping[int, str],
) -> str:
    """The page of verdict rows; `shown` has pictures by the places of rows that were judged.

    `files` has the addresses of image files by the same places, relative to the page. If it decides
    in hindsight, questions are asked and the slider flags a number of images.

    The same rows, pictures and addresses give the same bytes.
    """
    judged = [row for row in rows if row["error"] is None]
    near = by_closeness(judged)[: borderline(len(judged))]
    rest = [i for i in by_suspicion(judged) if i not in near]  # near has sixty at most
    lists = {"borderline": near}
    lists |= {answer: [i for i in rest if judged[i]["answer"] == answer] for answer in ANSWERS}
    asked = to_ask(judged) if facts.hindsight else []
    return document(
        __package__, "review", images="data: 'self' file:", title=TITLE,
        lines=summary(rows, facts, is_page=True), rows=judged, lists=lists, asked=asked,
        shown=shown, files=files, answers=NAMED,
        carded={*shown, *asked, *(i for places in lists.values() for i in places[:STEP])},
        failed=[row for row in rows if row["error"] is not None],
        text=lambda value: Markup(html.escape(printable(value))),
        data=_data(judged, list(dict.fromkeys(classes)), files, facts),
    )  # fmt: skip


def by_suspicion(rows: Sequence[Row]) -> list[int]:
    """Places of rows (N,), the most suspicious first: noise, then unsure, then clean ones.

    Ranks of images decided on arrival count only the images so far, so they do not order all.
    """
    keys = [(ANSWERS.index(row["answer"]), -row["margin"]) for row in rows]
    return sorted(range(len(rows)), key=keys.__getitem__)


def by_closeness(rows: Sequence[Row]) -> list[int]:
    """Places of rows (N,), nearest to their threshold first, on either side.

    Thresholds differ between images, so images are ordered by their margin.
    """
    return sorted(range(len(rows)), key=lambda i: abs(rows[i]["margin"]))


def borderline(count: int) -> int:
    """How many of `count` images are shown as borderline."""
    return min(count, max(_LEAST, min(_MOST, count // _SHARE)))


def to_ask(rows: Sequence[Row]) -> list[int]:
    """Places of rows that were not judged, nearest to their threshold first.

    Among files with the same content, one is asked about; none if one of them was judged.
    """
    images = [row["content"] or row["source"] for row in rows]
    first = {image: -1 for image, row in zip(images, rows, strict=True) if row["stage"] == JUDGED}
    for i in by_closeness(rows):
        first.setdefault(images[i], i)
    return [i for i in first.values() if i >= 0][:QUESTIONS]


def pictured(rows: Sequence[Row], most: int, files: Container[int] = ()) -> list[int]:
    """Places of the rows whose picture is in the page itself.

    Borderline and suspicious rows take turns; rows that have no file to show come first.
    """
    turns = zip_longest(by_closeness(rows), by_suspicion(rows))
    places = dict.fromkeys(chain.from_iterable(turns))
    return sorted(places, key=lambda i: i in files)[:most]


def _data(
    rows: Sequence[Row], classes: Sequence[str], files: Mapping[int, str], facts: Facts
) -> Markup:
    """All data for the script, by the places of rows, as JSON that cannot end its HTML element.

    Texts that a page must not show unchanged are given a second time, as they are shown. Images
    without content are known by the sources of all such.
    """
    numbers: dict[str, Any] = {name: i for i, name in enumerate(classes)}
    names, places, notes, tops = {row["class"] for row in rows}, {}, {}, []
    for i, row in enumerate(rows):
        if (place := printable(row["source"])) != row["source"]:
            places[i] = place
        if row["note"]:
            notes[i] = printable(row["note"])
        names |= {top["class"] for top in row["top"]}
        top = [(numbers.get(t["class"], t["class"]), round(1000 * t["score"])) for t in row["top"]]
        tops.append([*chain.from_iterable(top)])
    without = [row["source"] for row in rows if not row["content"]]
    values = {
        "format": FORMAT, "id": hashlib.sha256(json.dumps(without).encode()).hexdigest(),
        "columns": _COLUMNS, "rows": [[row[name] for name in _COLUMNS] for row in rows],
        "classes": classes, "tops": tops, "files": [files.get(i) for i in range(len(rows))],
        "places": places,
        "shown": {name: printable(name) for name in sorted(names) if printable(name) != name},
        "notes": notes, "near": borderline(len(rows)), "step": STEP, "answers": NAMED,
        "flag": facts.hindsight,
    }  # fmt: skip
    plain = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return Markup(plain.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}))


# Small pictures within the page, and the addresses of files beside it.


def pictures(photos: Sequence[Photo]) -> list[Picture | None]:
    """Small pictures of images, in order; None for one that cannot be read (any more)."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(_picture, photos))


def _picture(photo: Photo) -> Picture | None:
    try:
        # A JPEG is decoded no larger than necessary.
        return small(as_shown(photo.read(), small=(2 * SIDE, 2 * SIDE))[0])
    except Exception:  # of a damaged file PIL raises nearly anything; the page is still of use
        return None


def small(image: Image.Image) -> Picture:
    """An RGB image, as the encoder saw it, shrunk to fit into SIDE x SIDE pixels."""
    image = image.copy()
    image.thumbnail((SIDE, SIDE))
    content = io.BytesIO()
    image.save(content, _FORMAT, quality=_QUALITY)
    coded = base64.b64encode(content.getvalue()).decode()
    return Picture(f"data:image/{_FORMAT.lower()};base64,{coded}", *image.size)


def address(photo: Photo, folder: Path) -> str | None:
    """The relative address of an image's own file from the folder of a page, or None.

    Members of archives and cached features have no file of their own; other files are of a type
    that no browser draws. Names of any bytes are percent-encoded, and the address begins with a dot
    or two, so that no name is taken for a scheme or a host.
    """
    if photo.file is None or photo.member or photo.file.suffix.lower() not in _DRAWN:
        return None
    steps = PurePath(os.path.relpath(photo.file, folder)).as_posix()
    if "\\" in steps:  # browsers take it for a slash, however it is spelled
        return None
    return quote(os.fsencode(steps if steps.startswith("../") else f"./{steps}"))
