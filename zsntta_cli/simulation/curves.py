"""The curves that figures draw of a run: short lists of numbers, a few kB for any stream length.

All are over the test samples, in the order of the stream; injected items do not count.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

import numpy as np
from annotated_types import Ge, Gt, Lt, MaxLen, MinLen
from numpy.typing import NDArray
from typing_extensions import TypedDict

from zsntta_cli.simulation.metrics import class_counts

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Replay

BINS = 50  # of a histogram
POINTS = 64  # of a curve over the stream
MOST_CLASSES = 200  # that are counted one by one
LARGEST = 2**62  # of numbers in a record
GRADIENTS = ("gradient_clean", "gradient_noisy")  # columns of live runs that are analysed
ZERO_SHOT = "zero_shot_id_score"  # a column of live runs: the score before adaptation


@dataclass(frozen=True)
class After:
    """In an annotation: what checks or makes a value, when pydantic reads one from a file."""

    function: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """What pydantic asks for; it is imported where records from elsewhere are read alone."""
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(self.function, handler(source))


def _drawable(curve: Any) -> Any:
    """Refuse lists of different lengths, and cells or points that are none or in no order."""
    if len({len(values) for values in curve.values() if isinstance(values, list)}) != 1:
        raise ValueError("must be lists of one length")
    points = curve["item"] if "item" in curve else [curve.get("low"), curve.get("high")]
    if not points or None in points or any(a >= b for a, b in itertools.pairwise(points)):
        raise ValueError("must have points in ascending order")
    return {**curve, "item": [*map(int, points)]} if "item" in curve else curve


def _countable(counts: Any) -> Any:
    """Refuse lists of different lengths, classes that are none, and parts above their whole."""
    names, images = counts["names"], counts["images"]
    if {*map(len, counts.values())} != {len(names)}:
        raise ValueError("must be lists of one length")
    parts = counts["right"], counts.get("noise", images)
    if any(n > whole for part in parts for n, whole in zip(part, images, strict=True)):
        raise ValueError("must have no more right or noise than images")
    if max(counts["confused_with"]) >= len(names):
        raise ValueError("must have a class, or -1, in confused_with")
    return counts


Real = Annotated[float, Gt(-LARGEST), Lt(LARGEST)]
Count = Annotated[int, Ge(0), Lt(LARGEST)]
Line = Annotated[dict[str, list[Real | None]], MinLen(2), After(_drawable)]


class Histogram(TypedDict):
    """Counts of ID and of OOD samples in equal cells."""

    low: Real
    high: Real
    id: Annotated[list[Count], MinLen(2)]
    ood: list[Count]


Cells = Annotated[Histogram, After(_drawable)]


class Classes(TypedDict):
    """Counts by class: images, those classified right and those called noise, if it decides.

    `confused_with` is the place of the class that most others were taken for; -1: none was.
    """

    names: Annotated[list[str], MinLen(1), MaxLen(MOST_CLASSES)]
    images: list[Count]
    right: list[Count]
    noise: NotRequired[list[Count]]
    confused_with: list[Annotated[int, Ge(-1)]]


class RunCurves(TypedDict, total=False):
    """What figures draw of a run: the ID score, and its thresholds `zero_shot` and `detector`.

    `classes` is what the page shows by class, if there are at most 200. A live method also has the
    score before adaptation, the difference that this made, and maybe the norms of the gradients,
    `clean` and `noisy`, at each step.
    """

    __pydantic_config__ = {"extra": "forbid"}  # type: ignore[misc]  # noqa: RUF012

    scores: Cells
    thresholds: Line
    before: Cells
    difference: Cells
    gradients: Line
    classes: Annotated[Classes, After(_countable)]


def curves_of(replay: "Replay") -> dict[str, Any]:
    """The curves of a run, as RunCurves has them; None where there was no threshold."""
    tests, judged = replay.is_test, replay.judged
    is_id, score = judged.labels >= 0, judged.id_score
    curves = {"scores": histogram(score, is_id), **_thresholds(replay, tests)}
    if ZERO_SHOT in replay.columns:
        before = replay.columns[ZERO_SHOT][tests]
        curves["before"] = histogram(before, is_id)
        curves["difference"] = histogram(score - before, is_id)
    if set(GRADIENTS) <= set(replay.columns):
        clean, noisy = (replay.columns[name] for name in GRADIENTS)
        steps = np.flatnonzero(~np.isnan(clean) | ~np.isnan(noisy))
        norms = {"clean": _plain(clean[steps], 8), "noisy": _plain(noisy[steps], 8)}
        curves |= {"gradients": {"item": steps.tolist(), **norms}} if len(steps) else {}
    return curves | _classes(replay)


def histogram(values: NDArray[np.floating], is_id: NDArray[np.bool_]) -> dict[str, Any]:
    """Counts of ID and of OOD samples in BINS cells, over [0, 1] if all values are within."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low == high:
        high = low + 1
    cells = ((values - low) * (BINS / (high - low))).astype(np.int64).clip(0, BINS - 1)
    of_id, of_ood = (np.bincount(cells[m], minlength=BINS).tolist() for m in (is_id, ~is_id))
    return {"low": round(low, 6), "high": round(high, 6), "id": of_id, "ood": of_ood}


def _thresholds(replay: "Replay", tests: NDArray[np.bool_]) -> dict[str, Any]:
    """The thresholds on the ID score after at most POINTS items, evenly along the stream."""
    decisions, total = replay.decisions, int(tests.sum())
    of_score, of_detector = decisions.zero_shot_threshold, decisions.detector_threshold
    if (of_score is None and of_detector is None) or not total:
        return {}
    counts = np.linspace(0, total, min(POINTS, total) + 1).round().astype(np.int64)[1:]
    rows = np.flatnonzero(tests)[counts - 1]
    curve: dict[str, Any] = {"item": counts.tolist()}
    for name, values in (("zero_shot", of_score), ("detector", of_detector)):
        if values is not None:
            curve[name] = _plain(1 - values[rows], 6)
    return {"thresholds": curve}


def _classes(replay: "Replay") -> dict[str, Any]:
    """The counts by class, without those of the OOD samples."""
    names = replay.sources.id_set.class_names
    if len(names) > MOST_CLASSES:
        return {}
    counts = class_counts(replay.judged, len(names))
    lists = {what: of[:-1].tolist() for what, of in counts._asdict().items() if of is not None}
    del lists["confused"]
    return {"classes": {"names": [*names], **lists}}


def _plain(values: NDArray[np.floating], digits: int) -> list[float | None]:
    """Numbers as JSON has them; None for nan."""
    return [None if value != value else round(value, digits) for value in values.tolist()]
