"""The data of a review's script: rows, and what else it shows of an image, as JSON."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from markupsafe import Markup

from zsntta_cli.detection.verdicts import FORMAT, VerdictRow
from zsntta_cli.errors import printable

# What is given of each row, and put into a correction. Images without content are known by the
# sources of all such.
_COLUMNS = (
    "source", "content", "class", "answer", "noise", "rank", "score", "threshold",
    "margin", "stage", "evidence", "level", "encoder",
)  # fmt: skip


def page_data(
    rows: Sequence[VerdictRow],
    classes: Sequence[str],
    files: Mapping[int, str],
    **settings: Any,
) -> Markup:
    """All data for the script, including `settings`, by the places of rows.

    Texts that a page must not show unchanged are given a second time, as they are shown.
    """
    plain: list[dict[str, Any]] = [{**row} for row in rows]
    lists = [[row[name] for name in _COLUMNS] for row in plain]
    names = list(dict.fromkeys(classes))
    without = [row["source"] for row in rows if not row["content"]]
    digest = hashlib.sha256(json.dumps(without).encode()).hexdigest()
    places = enumerate(row["source"] for row in rows)
    return _json({
        "format": FORMAT, "id": digest, "columns": _COLUMNS, "rows": lists, "classes": names,
        "tops": _tops(rows, names), "files": [files.get(i) for i in range(len(rows))],
        "places": {i: printable(p) for i, p in places if printable(p) != p},
        "shown": {name: printable(name) for name in _names(rows) if printable(name) != name},
        "notes": {i: printable(row["note"]) for i, row in enumerate(rows) if row["note"]},
        **settings,
    })  # fmt: skip


def _tops(rows: Sequence[VerdictRow], names: Sequence[str]) -> list[list[Any]]:
    """The likeliest classes of each row, each as its number (or name) and its per mille."""
    numbers: dict[str, int | str] = {name: i for i, name in enumerate(names)}
    return [
        [x for top in row["top"] for x in (_number(numbers, top["class"]), _mille(top["score"]))]
        for row in rows
    ]


def _number(numbers: Mapping[str, int | str], name: str) -> int | str:
    return numbers.get(name, name)


def _mille(probability: float) -> int:
    return round(1000 * probability)


def _names(rows: Sequence[VerdictRow]) -> list[str]:
    """All class names of the rows, each once."""
    tops = (top["class"] for row in rows for top in row["top"])
    return list(dict.fromkeys(chain((row["class"] for row in rows), tops)))


def _json(values: dict[str, Any]) -> Markup:
    """Values as JSON that cannot end its HTML element."""
    plain = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return Markup(plain.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}))
