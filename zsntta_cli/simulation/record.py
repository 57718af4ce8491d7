"""A run and its record: the stream, the evaluated decisions, and everything that made them.

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
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NotRequired

import numpy as np
from annotated_types import Ge, Lt, MinLen
from numpy.typing import NDArray
from pydantic import AfterValidator
from typing_extensions import TypedDict

from zsntta_cli import __version__
from zsntta_cli.datasets.names import check_plain
from zsntta_cli.errors import SettingsError, StoreError, short
from zsntta_cli.methods import BY_SCORE, METHODS, find_method
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.method import fields_of
from zsntta_cli.settings import MATCH, StreamSettings, ThresholdSettings
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.curves import LARGEST, Count, RunCurves, curves_of
from zsntta_cli.simulation.metrics import METRICS, Judged, Measures, Metric, measure
from zsntta_cli.simulation.notes import RunNote, run_notes
from zsntta_cli.simulation.runs import RunSettings, revision, run_key, settings_of, source_digests
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, NOISE, Stream

_KINDS = ("id", "ood", "noise")  # by ID, OOD, NOISE
_GROUPS = ("accuracies", "detection", "flags")  # of metrics
_STATUS = Path("/proc/self/status")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


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
        SettingsError: the settings are not valid in this version.
    """
    method = find_method(plain["method"])
    if method is None:
        raise StoreError(
            f"the code of the method '{short(plain['method'])}' is missing: name its script before "
            f"the command, zsntta --plugin FILE.py …"
        )
    names: dict[str, Any] = {"ood_set": None}
    for what in ("encoder", "id_set", "ood_set"):
        if (name := plain.get(what)) is not None:
            names[what] = name
            check_plain(what, name)
    makers: dict[str, tuple[Any, Mapping[str, Any]]] = {
        "stream": (StreamSettings, fields_of(StreamSettings)),
        "threshold": (ThresholdSettings, fields_of(ThresholdSettings)),
        "options": (method.settings, method.fields()),
    }
    groups = {}
    for what, (maker, fields) in makers.items():
        values: Any = plain.get(what, {})
        for unknown in values.keys() - fields.keys():
            raise SettingsError(
                f"{short(ascii(unknown))} is not a setting of {what}: another version made this, "
                f"so run it again."
            )
        groups[what] = settings_of(maker, values, values)
    return RunSettings(plain["method"], **names, prompt=cached_prompt(plain["prompt"]), **groups)


def measured(values: Mapping[str, float | None]) -> Measures:
    """Metrics from a record's plain values, which have None instead of nan."""
    return Measures((name, math.nan if v is None else v) for name, v in values.items())


Number = Annotated[float, Ge(0), Lt(LARGEST)]
if TYPE_CHECKING:
    Settings = RunSettings
    Metrics = Measures
    Counts = dict[str, int]
    Curves = dict[str, Any]
else:
    _Value = Annotated[float, Ge(-1), Lt(LARGEST)] | None
    Settings = Annotated[PlainRun, AfterValidator(run_from_record)]
    Metrics = Annotated[dict[str, _Value], AfterValidator(measured)]
    Counts = Annotated[dict[Literal[_KINDS], Count], MinLen(3)]
    Curves = RunCurves


def _is(words: str) -> dict[str, str]:
    """Describe a value in the JSON Schema."""
    return {"description": words}


_FRACTIONS = _is("fractions by name; null without samples")


@dataclass(frozen=True)
class Record:
    """A finished run, with everything needed to run it again and to draw it."""

    settings: Settings
    counts: Counts = field(
        metadata=_is("items of each kind in the stream; injected ones (noise) enter no metric")
    )
    digests: dict[str, str] = field(
        metadata=_is("of the feature files; text/ID: of the class text and how all are read")
    )
    versions: dict[str, str]
    accuracies: Metrics = field(default_factory=Measures, metadata=_FRACTIONS)
    detection: Metrics = field(default_factory=Measures, metadata=_FRACTIONS)
    flags: Metrics = field(default_factory=Measures, metadata=_FRACTIONS)
    repeated: dict[str, Number] = field(
        default_factory=dict,
        metadata=_is("for sets that were too small, how often their images were shown"),
    )
    seconds: Number = field(default=0.0, metadata=_is("for the method alone"))
    created: str = ""
    unfinished: Count = field(
        default=0, metadata=_is("items left when Ctrl-C stopped a live method")
    )
    revision: str = field(
        default="",
        metadata=_is(
            "of the rules and of the method; for a user's own method, with digits of its source"
        ),
    )
    memory: Count = field(
        default=0,
        metadata=_is("peak bytes of the process, or of the GPU if one was used"),
    )
    device: str = "cpu"
    notes: tuple[RunNote, ...] = field(
        default=(), metadata=_is("what a reader of its numbers must know")
    )
    preset: str = field(default="", metadata=_is("the requested preset"))
    command: str = field(default="", metadata=_is("the command line, or the call in Python"))
    features: dict[str, Any] = field(
        default_factory=dict,
        metadata=_is("how the features were made: what all sets share, and the rest by set"),
    )
    own: dict[str, str] = field(
        default_factory=dict,
        metadata=_is("the SHA-256, by file name, of the script of a method from elsewhere"),
    )
    curves: Curves = field(default_factory=dict, metadata=_is("what figures show of the run"))

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
        """Whether its method decided what is noise, or only gave a score."""
        return not (math.isnan(self.metric("acc_s")) and math.isnan(self.metric("acc_n")))

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, without its curves; a metric without samples is None."""
        plain = dict(vars(self))
        del plain["curves"]
        plain.pop("key", None)  # it is there once it was asked for
        for group in _GROUPS:
            plain[group] = {k: None if math.isnan(v) else v for k, v in plain[group].items()}
        notes = [dict(vars(note)) for note in self.notes]
        return {**plain, "settings": self.settings.plain(), "notes": notes}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> "Record":
        """The record of plain values that `to_dict` gave, here or in an earlier run.

        Raises:
            StoreError: the code of its method is missing.
            TypeError, KeyError, SettingsError: another version made them.
        """
        groups = {name: measured(plain[name]) for name in _GROUPS}
        notes = tuple(RunNote(**note) for note in plain["notes"])
        run = run_from_record(plain["settings"])
        return cls(**{**plain, "settings": run, **groups, "notes": notes})


class Made(NamedTuple):
    """What a method made of a stream, and on what."""

    decisions: Decisions  # on all items, injected ones too, or on those before a Ctrl-C
    seconds: float
    columns: Mapping[str, NDArray[Any]] = {}  # what else a live method's items have
    device: str = "cpu"
    memory: int = 0  # bytes at most on a GPU
    versions: Mapping[str, str] = {}  # of what ran the encoder


@dataclass(frozen=True)
class Replay:
    """A run: its stream, and what the method decided."""

    settings: RunSettings
    sources: Sources
    stream: Stream  # of the items that were decided
    made: Made
    digests: dict[str, str]
    unfinished: int = 0  # items that a Ctrl-C cut off
    features: Mapping[str, Any] = field(default_factory=dict)  # how they came to be, of each set
    frozen_probability: NDArray[np.float64] | None = None  # (T,) of the frozen model's classes

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """The true class of all items (T,); -1 for items that belong to none."""
        is_id, labels = self.stream.kind == ID, np.full(len(self.stream), -1, np.int32)
        labels[is_id] = self.sources.id_set.labels[self.stream.row[is_id]]
        return labels

    @cached_property
    def judged(self) -> Judged:
        """The decisions on the test samples, in the stream's order: injected ones do not count."""
        decisions, method = self.made.decisions, METHODS[self.settings.method]
        tests = self.stream.kind != NOISE
        is_probability = method.is_probability and self.settings.threshold.score != MATCH
        of_class = self.frozen_probability
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
        settings, sources, made = self.settings, self.sources, self.made
        counts = np.bincount(self.stream.kind, minlength=len(_KINDS)).tolist()
        repeated = {}
        for kind, file in sources.files.items():
            if counts[kind] > len(file):
                repeated[file.name] = round(counts[kind] / len(file), 3)
        return Record(
            settings=settings,
            **measure(self.judged),
            counts=dict(zip(_KINDS, counts, strict=True)),
            repeated=repeated,
            digests=self.digests,
            seconds=made.seconds,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={
                "zsntta": __version__, "numpy": np.__version__,
                "python": platform.python_version(), **made.versions,
            },
            unfinished=self.unfinished,
            revision=revision(settings.method) or "",
            own=dict(source_digests(settings.method)),
            memory=made.memory or resident_peak(),
            device=made.device,
            notes=tuple(run_notes(settings, sources)),
            preset=settings.preset,
            command=command,
            features=dict(self.features),
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
