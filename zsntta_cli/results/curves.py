"""What figures draw of a run, as short lists of numbers: some kB, however long the stream was.

All are of the test samples, in the order of the stream; injected items do not count.
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
    counts in BINS equal cells. `running`: {"item", "acc_s", "acc_n"}, accuracies up to some items,
    None where no sample of the kind had come. `thresholds`: {"item", "zero_shot", "detector"} on
    the ID score, None where none was in force. Of a live method also `before` (scores before
    adaptation), `difference` (after minus before), and where gradients were asked for `gradients`:
    {"item", "clean", "noisy"}, norms at each step.
    """
    tests = replay.stream.kind != NOISE
    is_id = replay.labels[tests] >= 0
    score = replay.decisions.id_score[tests]
    curves = {"scores": histogram(score, is_id), **_running(replay, tests, is_id)}
    curves |= _thresholds(replay, tests)
    if _BEFORE in replay.columns:
        before = replay.columns[_BEFORE][tests]
        curves["before"] = histogram(before, is_id)
        curves["difference"] = histogram(score - before, is_id)
    return curves | _gradients(replay)


def histogram(values: NDArray[np.floating], is_id: NDArray[np.bool_]) -> Curves:
    """Counts of ID and of OOD samples in BINS cells; [0, 1] where all values are within."""
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
    """Up to POINTS counts of items, the last one all of them."""
    return np.linspace(0, total, min(POINTS, total) + 1).round().astype(np.int64)[1:]


def _running(replay: Replay, tests: NDArray[np.bool_], is_id: NDArray[np.bool_]) -> Curves:
    if replay.decisions.is_noise is None or not len(is_id):
        return {}
    is_noise = replay.decisions.is_noise[tests]
    labels, classes = replay.labels[tests], replay.decisions.class_index[tests]
    right = np.where(is_id, ~is_noise & (classes == labels), is_noise)
    counts = _points(len(is_id))
    curve: Curves = {"item": counts.tolist()}
    for name, mask in (("acc_s", is_id), ("acc_n", ~is_id)):
        seen = np.cumsum(mask)[counts - 1]
        hits = np.cumsum(right & mask)[counts - 1]
        with np.errstate(invalid="ignore"):
            curve[name] = _plain(hits / seen)
    return {"running": curve}


def _thresholds(replay: Replay, tests: NDArray[np.bool_]) -> Curves:
    decisions = replay.decisions
    found = {"zero_shot": decisions.zero_shot_threshold, "detector": decisions.detector_threshold}
    there = {name: values for name, values in found.items() if values is not None}
    if not there or not tests.any():
        return {}
    counts = _points(int(tests.sum()))
    rows = np.flatnonzero(tests)[counts - 1]
    curve = {name: _plain(1 - values[rows]) for name, values in there.items()}
    return {"thresholds": {"item": counts.tolist(), **curve}}


def _gradients(replay: Replay) -> Curves:
    columns = {"clean": "gradient_clean", "noisy": "gradient_noisy"}
    if not set(columns.values()) <= set(replay.columns):
        return {}
    norms = {name: replay.columns[column] for name, column in columns.items()}
    steps = np.flatnonzero(~np.isnan(norms["clean"]) | ~np.isnan(norms["noisy"]))
    curve = {name: _plain(values[steps], 8) for name, values in norms.items()}
    return {"gradients": {"item": steps.tolist(), **curve}}


def _plain(values: NDArray[np.floating], digits: int = 6) -> list[float | None]:
    """Numbers as JSON has them; None for nan."""
    return [None if value != value else round(value, digits) for value in values.tolist()]
