"""The curves that figures draw of a run: short lists of numbers, a few kB for any stream length.

All are over the test samples, in the order of the stream; injected items do not count.
"""

import itertools
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

import numpy as np
from annotated_types import Ge, Gt, Lt, MaxLen, MinLen
from numpy.typing import NDArray
from pydantic import AfterValidator
from typing_extensions import TypedDict

from zsntta_cli.simulation.metrics import class_counts
from zsntta_cli.simulation.stream import NOISE

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Replay

BINS = 50  # of a histogram
POINTS = 64  # of a curve over the stream
MOST_CLASSES = 200  # that are counted one by one
LARGEST = 2**62  # of numbers in a record
GRADIENTS = ("gradient_clean", "gradient_noisy")  # columns of live runs that are analysed
ZERO_SHOT = "zero_shot_id_score"  # a column of live runs: the score before adaptation


def _drawable(curve: Any) -> Any:
    """Refuse lists of different lengths, points in no order, and classes that are none."""
    if len({len(values) for values in curve.values() if isinstance(values, list)}) != 1:
        raise ValueError("must be lists of equal length")
    if "names" in curve:
        if max(curve["confused_with"]) >= len(curve["names"]):
            raise ValueError("must have a class, or -1, in confused_with")
        return curve
    points = curve["item"] if "item" in curve else [curve.get("low"), curve.get("high")]
    if not points or None in points or any(a >= b for a, b in itertools.pairwise(points)):
        raise ValueError("must have points in ascending order")
    return {**curve, "item": [*map(int, points)]} if "item" in curve else curve


Real = Annotated[float, Gt(-LARGEST), Lt(LARGEST)]
Count = Annotated[int, Ge(0), Lt(LARGEST)]
Line = Annotated[dict[str, list[Real | None]], MinLen(2), AfterValidator(_drawable)]


class Histogram(TypedDict):
    """Counts of ID and of OOD samples in bins of equal width."""

    low: Real
    high: Real
    id: Annotated[list[Count], MinLen(2)]
    ood: list[Count]


Cells = Annotated[Histogram, AfterValidator(_drawable)]


class Classes(TypedDict):
    """Counts by class: images, how many were classified correctly and how many called noise.

    `noise` is missing for a method that does not decide. `confused_with` is the index of the class
    for which most of the wrongly classified images were taken; -1 if there are none.
    """

    names: Annotated[list[str], MinLen(1), MaxLen(MOST_CLASSES)]
    images: list[Count]
    right: list[Count]
    noise: NotRequired[list[Count]]
    confused_with: list[Annotated[int, Ge(-1)]]


class RunCurves(TypedDict, total=False):
    """What figures draw of a run: the ID score, and its thresholds `zero_shot` and `detector`.

    `classes` is what the page shows by class, if there are at most 200. A live method also has the
    score before adaptation, the difference that adaptation made, and possibly the norms of the
    gradients, `clean` and `noisy`, at each step.
    """

    __pydantic_config__ = {"extra": "forbid"}  # type: ignore[misc]  # noqa: RUF012

    scores: Cells
    thresholds: Line
    before: Cells
    difference: Cells
    gradients: Line
    classes: Annotated[Classes, AfterValidator(_drawable)]


def curves_of(replay: "Replay") -> dict[str, Any]:
    """The curves of a run, as RunCurves has them; None where there was no threshold.

    Thresholds are on the ID score, after at most POINTS items, evenly along the stream.
    """
    tests, judged = replay.stream.kind != NOISE, replay.judged
    decisions, columns = replay.made.decisions, replay.made.columns
    is_id, score, total = judged.labels >= 0, judged.id_score, len(judged.labels)
    curves: dict[str, Any] = {"scores": histogram(score, is_id)}
    items = np.linspace(0, total, min(POINTS, total) + 1).round().astype(np.int64)[1:]
    rows = np.flatnonzero(tests)[items - 1]
    lines = {}
    for name in ("zero_shot", "detector"):
        if (of_items := getattr(decisions, f"{name}_threshold")) is not None:
            lines[name] = _plain(1 - of_items[rows], 6)
    if lines and total:
        curves["thresholds"] = {"item": items.tolist(), **lines}
    if ZERO_SHOT in columns:
        before = columns[ZERO_SHOT][tests]
        curves["before"] = histogram(before, is_id)
        curves["difference"] = histogram(score - before, is_id)
    if set(GRADIENTS) <= set(columns):
        clean, noisy = (columns[name] for name in GRADIENTS)
        if len(steps := np.flatnonzero(~np.isnan(clean) | ~np.isnan(noisy))):
            norms = {"clean": _plain(clean[steps], 8), "noisy": _plain(noisy[steps], 8)}
            curves["gradients"] = {"item": steps.tolist(), **norms}
    names = replay.sources.id_set.class_names
    if len(names) <= MOST_CLASSES:
        counts = class_counts(judged, len(names))
        curves["classes"] = of_classes = {
            "names": [*names], "images": counts.images[:-1].tolist(),
            "right": counts.right[:-1].tolist(),
        }  # fmt: skip
        if counts.noise is not None:
            of_classes["noise"] = counts.noise[:-1].tolist()
        of_classes["confused_with"] = counts.confused_with[:-1].tolist()
    return curves


def histogram(values: NDArray[np.floating], is_id: NDArray[np.bool_]) -> dict[str, Any]:
    """Counts of ID and OOD samples in BINS bins, over [0, 1] if all values are in it."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low == high:
        high = low + 1
    cells = ((values - low) * (BINS / (high - low))).astype(np.int64).clip(0, BINS - 1)
    of_all, of_id = np.bincount(cells, minlength=BINS), np.bincount(cells[is_id], minlength=BINS)
    bounds = {"low": round(low, 6), "high": round(high, 6)}
    return {**bounds, "id": of_id.tolist(), "ood": (of_all - of_id).tolist()}


def _plain(values: NDArray[np.floating], digits: int) -> list[float | None]:
    """Numbers as JSON has them; None for nan."""
    return [None if value != value else round(value, digits) for value in values.tolist()]
