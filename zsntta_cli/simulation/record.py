"""A run and its record: the stream, the decisions judged, and all that made them."""

import dataclasses
import math
import platform
import resource
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import __version__
from zsntta_cli.methods import BY_SCORE, METHODS, Method, Pair
from zsntta_cli.methods.base import Decisions
from zsntta_cli.settings import MATCH
from zsntta_cli.simulation.metrics import METRICS, Judged, Measures, Metric, measure
from zsntta_cli.simulation.notes import RunNote, SetSizes, run_notes
from zsntta_cli.simulation.revision import revision, source_digests
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, NOISE, OOD, Stream

Columns = dict[str, NDArray[Any]]
GRADIENTS = ("gradient_clean", "gradient_noisy")  # columns of live runs that are analysed

_KINDS = {"id": ID, "ood": OOD, "noise": NOISE}
_STATUS = Path("/proc/self/status")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Record:
    """The result of one run, with all that is needed to run it again."""

    settings: RunSettings
    accuracies: Measures
    detection: Measures
    flags: Measures
    counts: dict[str, int]  # items of each kind in the stream
    repeated: dict[str, float]  # sets that were too small: how often their images were shown
    digests: dict[str, str]  # of the feature files
    seconds: float  # of the method alone
    created: str
    versions: dict[str, str]
    unfinished: int = 0  # items of the stream that a Ctrl-C kept a live method from
    revision: str = ""  # of what decides the numbers (revision.py)
    memory: int = 0  # bytes: the process's peak so far, or the GPU's where one was used
    device: str = "cpu"
    notes: tuple[RunNote, ...] = ()  # what a reader of its numbers has to know
    preset: str = ""  # the one that was asked for
    command: str = ""  # that was typed, or the call in Python
    features: dict[str, Any] = field(default_factory=dict)  # by set: how its features came to be
    # Of a method from outside the package its script: SHA-256 by file name.
    own: dict[str, str] = field(default_factory=dict)

    def metric(self, metric: str | Metric) -> float:
        """A metric of METRICS as a fraction; nan without samples."""
        line = METRICS[metric] if isinstance(metric, str) else metric
        group: Measures = getattr(self, line.group)
        return group.get(line.name, math.nan)

    @property
    def decides(self) -> bool:
        """Whether its method decided what is noise, or gave only a score."""
        return not (math.isnan(self.metric("acc_s")) and math.isnan(self.metric("acc_n")))

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values; a metric without samples is None."""
        plain = dataclasses.asdict(dataclasses.replace(self, features={}))
        plain["features"] = self.features  # plain as they are: a copy takes 0.1 ms
        del plain["settings"]["preset"]  # a value of the record's own
        plain["settings"]["options"] = self.settings.options.values()
        for group in ("accuracies", "detection", "flags"):
            plain[group] = {k: None if np.isnan(v) else v for k, v in plain[group].items()}
        return plain


@dataclass(frozen=True)
class Machine:
    """The machine on which a live method's encoder ran."""

    device: str = "cpu"
    memory: int = 0  # bytes at most on a GPU
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Replay:
    """A run: its stream, and what the method decided."""

    settings: RunSettings
    sources: Sources
    stream: Stream
    decisions: Decisions
    digests: dict[str, str]
    seconds: float
    columns: Columns = field(default_factory=dict)  # what else a live method's items have
    unfinished: int = 0  # items that a Ctrl-C cut off
    machine: Machine = Machine()
    features: Mapping[str, Any] = field(default_factory=dict)  # how they came to be, of each set
    command: str = ""  # that asks for the run
    frozen_probability: NDArray[np.float64] | None = None  # (T,) of the frozen model's classes

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """The true class of all items (T,); -1 for items that belong to none."""
        return true_labels(self.sources, self.stream)

    @cached_property
    def judged(self) -> Judged:
        """The decisions on the test samples, in the stream's order; injected items do not count."""
        decisions = self.decisions
        tests = self._tests
        is_noise = None if decisions.is_noise is None else decisions.is_noise[tests]
        is_probability = self._method.is_probability and self.settings.threshold.score != MATCH
        of_class = self.frozen_probability
        if self._method.class_probability == BY_SCORE and is_probability:
            of_class = decisions.id_score
        return Judged(
            self.labels[tests], decisions.class_index[tests], is_noise, decisions.id_score[tests],
            is_probability, None if of_class is None else of_class[tests],
        )  # fmt: skip

    @property
    def _tests(self) -> NDArray[np.bool_] | slice:
        """The items that are test samples; the items unchanged if nothing is injected."""
        tests = self.stream.kind != NOISE
        return slice(None) if tests.all() else tests

    @property
    def _method(self) -> type[Method] | Pair:
        return METHODS[self.settings.method]

    def _repeated(self) -> dict[str, float]:
        sources = zip((OOD, NOISE), (self.sources.ood_set, self.sources.noise), strict=True)
        times_shown = {s.name: int((self.stream.kind == k).sum()) / len(s) for k, s in sources if s}
        return {name: round(times, 3) for name, times in times_shown.items() if times > 1}

    def _notes(self) -> Iterator[RunNote]:
        id_set = self.sources.id_set
        sizes = SetSizes(*self.sources.sizes, len(id_set.class_names), id_set.dim)
        return run_notes(self.settings, sizes)

    def record(self) -> Record:
        """The decisions judged on the test samples, with the current time."""
        measures = measure(self.judged)
        return Record(
            settings=self.settings,
            accuracies=measures["accuracies"],
            detection=measures["detection"],
            flags=measures["flags"],
            counts={name: int((self.stream.kind == kind).sum()) for name, kind in _KINDS.items()},
            repeated=self._repeated(),
            digests=self.digests,
            seconds=self.seconds,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={
                "zsntta": __version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
                **self.machine.versions,
            },
            unfinished=self.unfinished,
            revision=revision(self.settings.method) or "",
            own=dict(source_digests(self.settings.method)),
            memory=self.machine.memory or resident_peak(),
            device=self.machine.device,
            notes=tuple(self._notes()),
            preset=self.settings.preset,
            command=self.command,
            features=dict(self.features),
        )


def resident_peak() -> int:
    """The most bytes that this process has held.

    On Linux the system's count for a process begins with its parent's peak; its count for the
    process's memory does not.
    """
    try:
        [line] = [x for x in _STATUS.read_text().splitlines() if x.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def true_labels(sources: Sources, stream: Stream) -> NDArray[np.int32]:
    """The true class of all items (T,); -1 for items that belong to none."""
    is_id = stream.kind == ID
    labels = np.full(len(stream), -1, np.int32)
    labels[is_id] = sources.id_set.labels[stream.row[is_id]]
    return labels
