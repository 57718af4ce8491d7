"""The review page: what is borderline, noise, clean, to be looked at and corrected.

Without script it is three lists as they were decided. With it a slider moves all thresholds by one
amount, which is `detect --flag N`; corrections are exported for `detect --judge`.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from zsntta_cli.detection.runs.rows import FORMAT, Row
from zsntta_cli.report.page.document import asset, document, footer
from zsntta_cli.report.page.markup import data, text
from zsntta_cli.report.review.ordering import borderline, by_closeness, by_suspicion
from zsntta_cli.report.review.pictures import Picture
from zsntta_cli.report.verdicts import Tally, place

TITLE = "Review of verdicts"
# What the script is given of a row, and puts into a correction.
_TOLD = (
    "source", "frame", "class", "noise", "rank", "score", "threshold", "margin", "stage", "encoder",
)  # fmt: skip
_SECTIONS = {
    "borderline": ("Borderline", "Nearest to their thresholds, on either side, nearest first."),
    "noise": ("Noise", "Belongs to none of the classes; the most suspicious first."),
    "clean": ("Clean", "Belongs to the class that is named; the most suspicious first."),
}


def review(
    rows: Sequence[Row],
    classes: Sequence[str],
    method: str,
    shown: Mapping[int, Picture] | None = None,
    hindsight: bool = True,
) -> str:
    """The page of verdict rows; `shown` are pictures by the places of rows that were judged.

    `hindsight`: whether the command could flag a number of images, as the slider does.

    The same rows and pictures give the same bytes.
    """
    judged = [row for row in rows if row["error"] is None]
    failed = [row for row in rows if row["error"] is not None]
    can_flag = hindsight and all(row["frame"] is None for row in judged)
    told = _data(judged, classes, can_flag)
    sections = "".join(_sections(judged, shown or {})) + _unreadable(failed)
    body = (
        f"<header><h1>{TITLE}</h1>{_found(rows, classes, method)}{_WORDS}</header>\n"
        f"{_contents(bool(failed))}<main>{_BAR}{sections}</main>\n{footer()}{told}"
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


def _found(rows: Sequence[Row], classes: Sequence[str], method: str) -> str:
    """What was found, and what cannot be known, as the command says it."""
    tally = Tally(method, len(classes))
    tally.add(rows)
    return "".join(f"<p>{text(line)}</p>" for line in tally.lines())


def _contents(has_failed: bool) -> str:
    names = {key: name for key, (name, _) in _SECTIONS.items()}
    names |= {"failed": "Not read"} if has_failed else {}
    links = "".join(f'<li><a href="#{key}">{name}</a>' for key, name in names.items())
    return f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n'


def _sections(rows: Sequence[Row], shown: Mapping[int, Picture]) -> Iterable[str]:
    """The lists as they were decided; each image stands in one of them."""
    near = by_closeness(rows)[: borderline(len(rows))]
    taken = set(near)
    split: dict[str, list[int]] = {"borderline": near, "noise": [], "clean": []}
    for i in by_suspicion(rows):
        if i not in taken:
            split["noise" if rows[i]["noise"] else "clean"].append(i)
    for key, (name, about) in _SECTIONS.items():
        cards = "".join(_card(i, rows[i], shown.get(i)) for i in split[key])
        yield (
            f'<section aria-labelledby="{key}"><h2 id="{key}">{name} '
            f"<small>{len(split[key]):,}</small></h2><p>{about}</p>\n<ol>{cards}</ol></section>\n"
        )


def _card(i: int, row: Row, picture: Picture | None) -> str:
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


def _unreadable(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    lines = "".join(f"<li>{text(place(row))}: {text(row['error'])}\n" for row in rows)
    return (
        f'<section aria-labelledby="failed"><h2 id="failed">Not read <small>{len(rows):,}</small>'
        f"</h2><p>These have no verdict.</p>\n<ul>{lines}</ul></section>\n"
    )


def _data(rows: Sequence[Row], classes: Sequence[str], can_flag: bool) -> str:
    """What the script works on: rows as lists, and a name for what is kept of corrections."""
    lists = [[row[name] for name in _TOLD] for row in rows]
    known = list(dict.fromkeys(classes))
    digest = hashlib.sha256(json.dumps([lists, known]).encode()).hexdigest()
    values = {
        "format": FORMAT, "id": digest, "columns": _TOLD, "rows": lists, "classes": known,
        "near": borderline(len(rows)), "flag": can_flag,
    }  # fmt: skip
    return data("review-data", values)
