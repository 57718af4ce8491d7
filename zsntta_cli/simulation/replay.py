"""A run that was made: what a method decided, the record of it, and the curves that figures draw.

All numbers are over the test samples, in the order of the stream; injected items do not count.
"""

import platform
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import __version__
from zsntta_cli.cache.origin import shared_once
from zsntta_cli.methods import BY_SCORE, METHODS
from zsntta_cli.methods.base import Decisions
from zsntta_cli.settings import MATCH
from zsntta_cli.simulation.metrics import Judged, class_counts, measure
from zsntta_cli.simulation.notes import run_notes
from zsntta_cli.simulation.record import KINDS, MOST_CLASSES, Record
from zsntta_cli.simulation.runs import revision, source_digests
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, NOISE, Stream

BINS = 50  # of a histogram
POINTS = 64  # of a curve over the stream
GRADIENTS = ("gradient_clean", "gradient_noisy")  # columns of live runs that are analysed
ZERO_SHOT = "zero_shot_id_score"  # a column of live runs: the score before adaptation
_STATUS = Path("/proc/self/status")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


class Made(NamedTuple):
    """The result of a method on a stream, and what it took."""

    decisions: Decisions  # on all items, including injected ones, or on those before a Ctrl-C
    seconds: float
    columns: Mapping[str, NDArray[Any]] = {}  # what else a live method's items have
    device: str = "cpu"
    memory: int = 0  # bytes at most on a GPU
    versions: Mapping[str, str] = {}  # of what ran the encoder


@dataclass(frozen=True)
class Replay:
    """A run: its stream, and what the method decided."""

    sources: Sources
    stream: Stream  # of the items that were decided
    made: Made
    unfinished: int  # items that a Ctrl-C cut off
    frozen_probability: NDArray[np.float64] | None  # (T,) of the frozen model's classes

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """The true class of all items (T,); -1 for items that belong to none."""
        is_id, labels = self.stream.kind == ID, np.full(len(self.stream), -1, np.int32)
        labels[is_id] = self.sources.id_set.labels[self.stream.row[is_id]]
        return labels

    @cached_property
    def judged(self) -> Judged:
        """The decisions on the test samples, in the stream's order: injected ones do not count."""
        run, decisions, tests = self.sources.run, self.made.decisions, self.stream.kind != NOISE
        method, of_class = METHODS[run.method], self.frozen_probability
        is_probability = method.is_probability and run.threshold.score != MATCH
        if method.class_probability == BY_SCORE and is_probability:
            of_class = decisions.id_score
        is_noise = None if decisions.is_noise is None else decisions.is_noise[tests]
        return Judged(
            self.labels[tests], decisions.class_index[tests], is_noise, decisions.id_score[tests],
            is_probability, None if of_class is None else of_class[tests],
        )  # fmt: skip

    def record(self, command: str = "") -> Record:
        """The decisions judged on the test samples, with the current time and curves.

        `command` asked for the run.
        """
        run, made = self.sources.run, self.made
        counts = np.bincount(self.stream.kind, minlength=len(KINDS)).tolist()
        repeated = {}
        for kind, file in self.sources.files.items():
            if counts[kind] > len(file):
                repeated[file.name] = round(counts[kind] / len(file), 3)
        return Record(
            settings=run,
            **measure(self.judged),
            counts=dict(zip(KINDS, counts, strict=True)),
            repeated=repeated,
            digests=self.sources.digests(),
            seconds=made.seconds,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={
                "zsntta": __version__, "numpy": np.__version__,
                "python": platform.python_version(), **made.versions,
            },
            unfinished=self.unfinished,
            revision=revision(run.method) or "",
            own=dict(source_digests(run.method)),
            memory=made.memory or resident_peak(),
            device=made.device,
            notes=tuple(run_notes(self.sources)),
            preset=run.preset,
            command=command,
            features=shared_once(self.sources.origins()),
            curves=curves_of(self),
        )  # fmt: skip


def resident_peak() -> int:
    """The most bytes that this process has held.

    On Linux the system's count for a process begins with its parent's peak; its count for the
    process's memory does not.
    """
    try:
        _, _, held = _STATUS.read_text().partition("VmHWM:")
        return int(held.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def curves_of(replay: Replay) -> dict[str, Any]:
    """The curves of a run, as RunCurves has them; None where there was no threshold.

    Thresholds are on the ID score, after at most POINTS items, evenly along the stream.
    """
    tests, judged = replay.stream.kind != NOISE, replay.judged
    decisions, columns = replay.made.decisions, replay.made.columns
    is_id, score, total = judged.labels >= 0, judged.id_score, len(judged.labels)
    curves: dict[str, Any] = {"scores": _histogram(score, is_id)}
    items = np.linspace(0, total, min(POINTS, total) + 1).round().astype(np.int64)[1:]
    rows, lines = np.flatnonzero(tests)[items - 1], {}
    for name in ("zero_shot", "detector"):
        if (of_items := getattr(decisions, f"{name}_threshold")) is not None:
            lines[name] = _plain(1 - of_items[rows], 6)
    if lines and total:
        curves["thresholds"] = {"item": items.tolist(), **lines}
    if ZERO_SHOT in columns:
        before = columns[ZERO_SHOT][tests]
        curves["before"] = _histogram(before, is_id)
        curves["difference"] = _histogram(score - before, is_id)
    if set(GRADIENTS) <= set(columns):
        clean, noisy = (columns[name] for name in GRADIENTS)
        if len(steps := np.flatnonzero(~np.isnan(clean) | ~np.isnan(noisy))):
            norms = {"clean": _plain(clean[steps], 8), "noisy": _plain(noisy[steps], 8)}
            curves["gradients"] = {"item": steps.tolist(), **norms}
    names = replay.sources.id_set.class_names
    if len(names) <= MOST_CLASSES:
        curves["classes"] = {"names": [*names]}
        for name, counts in class_counts(judged, len(names))._asdict().items():
            if counts is not None and name != "confused":
                curves["classes"][name] = counts[:-1].tolist()
    return curves


def _histogram(values: NDArray[np.floating], is_id: NDArray[np.bool_]) -> dict[str, Any]:
    """Counts of ID and OOD samples in BINS bins, over [0, 1] if all values are in it."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low == high:
        high = low + 1
    cells = ((values - low) * (BINS / (high - low))).astype(np.int64).clip(0, BINS - 1)
    of_id = np.bincount(cells[is_id], minlength=BINS).tolist()
    of_ood = np.bincount(cells[~is_id], minlength=BINS).tolist()
    return {"low": round(low, 6), "high": round(high, 6), "id": of_id, "ood": of_ood}


def _plain(values: NDArray[np.floating], digits: int) -> list[float | None]:
    """Numbers as JSON has them; None for nan."""
    return [None if value != value else round(value, digits) for value in values.tolist()]
