"""The curves that figures draw of a run: short lists of numbers, a few kB for any stream length.

All are over the test samples, in the order of the stream; injected items do not count.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.simulation.record import Replay
from zsntta_cli.simulation.stream import NOISE

BINS = 50  # of a histogram
POINTS = 64  # of a curve over the stream

Curves = dict[str, Any]
_BEFORE = "zero_shot_id_score"  # a live method's column


def curves_of(replay: Replay) -> Curves:
    """The curves of a run.

    `scores`: a histogram of the ID score for ID and OOD samples, {"low", "high", "id", "ood"} with
    counts in BINS equal cells. `thresholds`: {"item", "zero_shot", "detector"} on the ID score
    after some items, None where there was none. A live method also has `before` (scores before
    adaptation), `difference` (after minus before), and if gradients were asked for `gradients`:
    {"item", "clean", "noisy"}, norms at each step.
    """
    tests, judged = replay.stream.kind != NOISE, replay.judged
    is_id, score = judged.labels >= 0, judged.id_score
    curves = {"scores": histogram(score, is_id), **_thresholds(replay, tests)}
    if _BEFORE in replay.columns:
        before = replay.columns[_BEFORE][tests]
        curves["before"] = histogram(before, is_id)
        curves["difference"] = histogram(score - before, is_id)
    return curves | _gradients(replay)


def histogram(values: NDArray[np.floating], is_id: NDArray[np.bool_]) -> Curves:
    """Counts of ID and of OOD samples in BINS cells, over [0, 1] if all values are within."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low == high:
        high = low + 1
    cells = ((values - low) * (BINS / (high - low))).astype(np.int64).clip(0, BINS - 1)
    counts = {
        name: np.bincount(cells[mask], minlength=BINS).tolist()
        for name, mask in (("id", is_id), ("ood", ~is_id))
    }
    return {"low": round(low, 6), "high": round(high, 6), **counts}


def _points(total: int) -> NDArray[np.int64]:
    """At most POINTS item counts, evenly along the stream; the last one is all items."""
    return np.linspace(0, total, min(POINTS, total) + 1).round().astype(np.int64)[1:]


def _thresholds(replay: Replay, tests: NDArray[np.bool_]) -> Curves:
    zero_shot, detector = replay.decisions.zero_shot_threshold, replay.decisions.detector_threshold
    thresholds = {"zero_shot": zero_shot, "detector": detector}
    in_force = {name: values for name, values in thresholds.items() if values is not None}
    if not in_force or not tests.any():
        return {}
    counts = _points(int(tests.sum()))
    rows = np.flatnonzero(tests)[counts - 1]
    curve = {name: _plain(1 - values[rows]) for name, values in in_force.items()}
    return {"thresholds": {"item": counts.tolist(), **curve}}


def _gradients(replay: Replay) -> Curves:
    columns = {"clean": "gradient_clean", "noisy": "gradient_noisy"}
    if not set(columns.values()) <= set(replay.columns):
        return {}
    norms = {name: replay.columns[column] for name, column in columns.items()}
    steps = np.flatnonzero(~np.isnan(norms["clean"]) | ~np.isnan(norms["noisy"]))
    if not len(steps):
        return {}
    curve = {name: _plain(values[steps], 8) for name, values in norms.items()}
    return {"gradients": {"item": steps.tolist(), **curve}}


def _plain(values: NDArray[np.floating], digits: int = 6) -> list[float | None]:
    """Numbers as JSON has them; None for nan."""
    return [None if value != value else round(value, digits) for value in values.tolist()]
