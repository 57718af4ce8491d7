"""A run and its record: the stream, the decisions judged, and all that made them.

A record is described here and nowhere else: a replay makes it, the store keeps it, a line of an
export is one, and docs/record.schema.json is its JSON Schema. What comes from elsewhere is read by
pydantic, by these annotations (results/exchange.py).
"""

import math
import platform
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

import numpy as np
from annotated_types import Ge, Lt, MinLen
from numpy.typing import NDArray
from typing_extensions import TypedDict

from zsntta_cli import __version__
from zsntta_cli.datasets.names import check_plain
from zsntta_cli.errors import SettingsError, StoreError, short
from zsntta_cli.methods import BY_SCORE, METHODS, find_method
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.method import fields_of
from zsntta_cli.settings import MATCH, StreamSettings, ThresholdSettings
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.curves import LARGEST, After, Count, RunCurves, curves_of
from zsntta_cli.simulation.metrics import METRICS, Judged, Measures, Metric, measure
from zsntta_cli.simulation.notes import RunNote, run_notes
from zsntta_cli.simulation.runs import RunSettings, revision, run_key, settings_of, source_digests
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, NOISE, OOD, Stream

Columns = dict[str, NDArray[Any]]

_KINDS = ("id", "ood", "noise")  # by ID, OOD, NOISE
_GROUPS = ("accuracies", "detection", "flags")  # of metrics
_STATUS = Path("/proc/self/status")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_LONGEST_PROMPT, _LONGEST_NAME = 1000, 100  # characters


class PlainRun(TypedDict):
    """All settings of a run, as plain values."""

    __pydantic_config__ = {"extra": "forbid"}  # type: ignore[misc]  # noqa: RUF012

    method: str
    encoder: str
    id_set: str
    ood_set: NotRequired[str | None]
    prompt: str
    stream: NotRequired[dict[str, Any]]
    threshold: NotRequired[dict[str, Any]]
    options: NotRequired[dict[str, Any]]


def run_from_record(plain: PlainRun) -> RunSettings:
    """The run that a record's settings describe.

    Raises:
        StoreError: the method is not known here.
        SettingsError: they are no valid settings of this version.
    """
    method, prompt = plain["method"], plain["prompt"]
    is_name = method.isprintable() and 0 < len(method) <= _LONGEST_NAME
    check(is_name, f"method is {short(ascii(method))}, which cannot be the name of a method.")
    check(len(prompt) <= _LONGEST_PROMPT, "prompt is no short text.")
    names = {"encoder": plain["encoder"], "id_set": plain["id_set"]}
    ood_set = plain.get("ood_set")
    for what, name in (names if ood_set is None else {**names, "ood_set": ood_set}).items():
        check_plain(what, name)
    chosen = find_method(method)
    if chosen is None:
        raise StoreError(
            f"the code of the method '{short(method)}' is not here: put its script before the "
            f"command, zsntta --plugin FILE.py …"
        )
    stream = _group("stream", StreamSettings, fields_of(StreamSettings), plain)
    threshold = _group("threshold", ThresholdSettings, fields_of(ThresholdSettings), plain)
    options = _group("options", chosen.settings, chosen.fields(), plain)
    return RunSettings(
        method, **names, ood_set=ood_set, prompt=cached_prompt(prompt), stream=stream,
        threshold=threshold, options=options,
    )  # fmt: skip


def _group(what: str, maker: Any, names: Mapping[str, Any], plain: Mapping[str, Any]) -> Any:
    """A group of settings of a record, which has no others than these names."""
    values = plain.get(what, {})
    for name in values:
        if name not in names:
            raise SettingsError(
                f"{short(ascii(name))} is no setting of {what}: another version made this, so run "
                f"it again."
            )
    return settings_of(maker, values, values)


def measured(values: Mapping[str, float | None]) -> Measures:
    """Metrics of a record's plain values, which have None in the place of nan."""
    return Measures((name, math.nan if v is None else v) for name, v in values.items())


def _plain(values: Measures) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in values.items()}


Number = Annotated[float, Ge(0), Lt(LARGEST)]
if TYPE_CHECKING:
    Settings = RunSettings
    Metrics = Measures
    Counts = dict[str, int]
    Curves = dict[str, Any]
else:
    Settings = Annotated[PlainRun, After(run_from_record)]
    Metrics = Annotated[dict[str, Annotated[float, Ge(-1), Lt(LARGEST)] | None], After(measured)]
    Counts = Annotated[dict[Literal[_KINDS], Count], MinLen(3)]
    Curves = RunCurves


def _is(words: str) -> dict[str, str]:
    """Describe a value in the JSON Schema."""
    return {"description": words}


_FRACTIONS = _is("by name: fractions; null without samples")


@dataclass(frozen=True)
class Record:
    """A finished run, with all that is needed to run it again and to draw it."""

    settings: Settings
    counts: Counts = field(metadata=_is("items of each kind in the stream; noise is not judged"))
    digests: dict[str, str] = field(
        metadata=_is("of the feature files; text/ID of the class text and how all are read")
    )
    versions: dict[str, str]
    accuracies: Metrics = field(default_factory=Measures, metadata=_FRACTIONS)
    detection: Metrics = field(default_factory=Measures, metadata=_FRACTIONS)
    flags: Metrics = field(default_factory=Measures, metadata=_FRACTIONS)
    repeated: dict[str, Number] = field(
        default_factory=dict,
        metadata=_is("sets that were too small: how often their images were shown"),
    )
    seconds: Number = field(default=0.0, metadata=_is("of the method alone"))
    created: str = ""
    unfinished: Count = field(default=0, metadata=_is("items that Ctrl-C kept a live method from"))
    revision: str = field(
        default="",
        metadata=_is("of the rules and of the method; with digits of its source where it is a "
                     "user's own"),
    )  # fmt: skip
    memory: Count = field(
        default=0, metadata=_is("bytes: the process's peak, or the GPU's where one was used")
    )
    device: str = "cpu"
    notes: tuple[RunNote, ...] = field(
        default=(), metadata=_is("what a reader of its numbers has to know")
    )
    preset: str = field(default="", metadata=_is("the preset that was asked for"))
    command: str = field(default="", metadata=_is("the command line, or the call in Python"))
    features: dict[str, Any] = field(
        default_factory=dict,
        metadata=_is("how the features came to be: shared by all sets, and the rest by set"),
    )
    own: dict[str, str] = field(
        default_factory=dict,
        metadata=_is("the script of a method from outside the package: its SHA-256 by file name"),
    )
    curves: Curves = field(default_factory=dict, metadata=_is("what figures draw of the run"))

    @cached_property
    def key(self) -> str:
        """The key under which the run is kept: a digest of all that determines its numbers."""
        return run_key(self.settings, self.digests, self.revision)

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
        """The record as plain values, without its curves; a metric without samples is None."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        del plain["curves"]
        groups = {name: _plain(plain[name]) for name in _GROUPS}
        notes = [dict(vars(note)) for note in self.notes]
        return {**plain, "settings": self.settings.plain(), **groups, "notes": notes}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> "Record":
        """The record of plain values that `to_dict` gave, here or in an earlier run.

        Raises:
            StoreError: the code of its method is not here.
            TypeError, KeyError, SettingsError: they are of another version.
        """
        groups = {name: measured(plain[name]) for name in _GROUPS}
        notes = tuple(RunNote(**note) for note in plain["notes"])
        run = run_from_record(plain["settings"])
        return cls(**{**plain, "settings": run, **groups, "notes": notes})


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
    frozen_probability: NDArray[np.float64] | None = None  # (T,) of the frozen model's classes

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """The true class of all items (T,); -1 for items that belong to none."""
        return true_labels(self.sources, self.stream)

    @cached_property
    def is_test(self) -> NDArray[np.bool_]:
        """Which items (T,) are judged: injected ones are not."""
        return self.stream.kind != NOISE

    @cached_property
    def judged(self) -> Judged:
        """The decisions on the test samples, in the stream's order."""
        decisions, method, tests = self.decisions, METHODS[self.settings.method], self.is_test
        is_noise = None if decisions.is_noise is None else decisions.is_noise[tests]
        is_probability = method.is_probability and self.settings.threshold.score != MATCH
        of_class = self.frozen_probability
        if method.class_probability == BY_SCORE and is_probability:
            of_class = decisions.id_score
        return Judged(
            self.labels[tests], decisions.class_index[tests], is_noise, decisions.id_score[tests],
            is_probability, None if of_class is None else of_class[tests],
        )  # fmt: skip

    def record(self, command: str = "") -> Record:
        """The decisions judged on the test samples, with the current time and curves.

        `command` asked for the run.
        """
        settings, sources = self.settings, self.sources
        counts = np.bincount(self.stream.kind, minlength=len(_KINDS)).tolist()
        repeated = {
            source.name: round(counts[kind] / len(source), 3)
            for kind, source in ((OOD, sources.ood_set), (NOISE, sources.noise))
            if source and counts[kind] > len(source)
        }
        versions = {
            "zsntta": __version__, "numpy": np.__version__, "python": platform.python_version(),
        }  # fmt: skip
        return Record(
            settings=settings,
            **measure(self.judged),
            counts=dict(zip(_KINDS, counts, strict=True)),
            repeated=repeated,
            digests=self.digests,
            seconds=self.seconds,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={**versions, **self.machine.versions},
            unfinished=self.unfinished,
            revision=revision(settings.method) or "",
            own=dict(source_digests(settings.method)),
            memory=self.machine.memory or resident_peak(),
            device=self.machine.device,
            notes=tuple(run_notes(settings, sources)),
            preset=settings.preset,
            command=command,
            features=dict(self.features),
            curves=curves_of(self),
        )


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


def true_labels(sources: Sources, stream: Stream) -> NDArray[np.int32]:
    """The true class of all items (T,); -1 for items that belong to none."""
    is_id = stream.kind == ID
    labels = np.full(len(stream), -1, np.int32)
    labels[is_id] = sources.id_set.labels[stream.row[is_id]]
    return labels
