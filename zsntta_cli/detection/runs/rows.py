"""Verdict rows, format 1: what is said of an image, as plain values for files and programs.

A row's fields are frozen (docs/verdict.schema.json); what could not be judged has `error` and no
verdict.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from zsntta_cli.detection.encoding.encoding import Encoded
from zsntta_cli.detection.runs.flags import Decided
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.detection.verdicts import Verdicts

FORMAT = 1
FIELDS = (
    "format", "source", "frame", "time_s", "class", "class_index", "noise", "rank", "score",
    "threshold", "margin", "stage", "top", "error", "encoder",
)  # fmt: skip

Row = dict[str, Any]


def judged(
    items: Sequence[Item], verdicts: Verdicts, decided: Decided, encoder_name: str
) -> Iterator[Row]:
    """The rows of images (N,) with what was decided on them."""
    columns = zip(
        items, verdicts, decided.noise.tolist(), decided.threshold.tolist(),
        decided.rank.tolist(), strict=True,
    )  # fmt: skip
    for item, verdict, noise, threshold, rank in columns:
        yield {
            **_place(item),
            "class": verdict.class_name,
            "class_index": verdict.class_index,
            "noise": noise,
            "rank": rank,
            "score": verdict.score,
            "threshold": threshold,
            "margin": verdict.score - threshold,
            "stage": verdict.stage,
            "top": [{"class": name, "score": score} for name, score in verdict.top],
            "error": None,
            "encoder": encoder_name,
        }


def unreadable(item: Item, error: str, encoder_name: str) -> Row:
    """The row of what could not be read."""
    nothing = dict.fromkeys(FIELDS)
    return {**nothing, **_place(item), "error": error, "encoder": encoder_name}


def _place(item: Item) -> Row:
    return {
        "format": FORMAT, "source": item.source, "frame": item.frame, "time_s": item.time_s,
    }  # fmt: skip


def woven(
    encoded: Sequence[Encoded], repeats: Sequence[bool], rows: Iterator[Row], last: Row | None,
    encoder_name: str,
) -> list[Row]:  # fmt: skip
    """All rows in the input's order, from those of the images that were judged.

    A frame that repeats takes over the row of the frame before it, `last` where that is none of
    these.
    """
    found: list[Row] = []
    for one, repeats_last in zip(encoded, repeats, strict=True):
        if one.features is None:
            found.append(unreadable(one.item, one.error, encoder_name))
        elif repeats_last:
            assert last is not None
            found.append({**last, **_place(one.item)})
        else:
            last = next(rows)
            found.append(last)
    return found
