"""A run and its record: the stream, the decisions judged, and all that made them.

A record is described here and nowhere else: a replay makes it, the store keeps it, a line of an
export is one, and docs/record.schema.json is its JSON Schema.
"""

import itertools
import math
import platform
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)
from typing_extensions import TypedDict

from zsntta_cli import __version__
from zsntta_cli.methods import BY_SCORE, METHODS
from zsntta_cli.methods.base import Decisions
from zsntta_cli.settings import MATCH
from zsntta_cli.simulation.metrics import METRICS, Judged, Measures, Metric, measure
from zsntta_cli.simulation.notes import RunNote, run_notes
from zsntta_cli.simulation.recorded import revision, run_from_record, run_key, source_digests
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, NOISE, OOD, Stream

Columns = dict[str, NDArray[Any]]
GRADIENTS = ("gradient_clean", "gradient_noisy")  # columns of live runs that are analysed

_KINDS: tuple[Literal["id", "ood", "noise"], ...] = ("id", "ood", "noise")  # by ID, OOD, NOISE
_STATUS = Path("/proc/self/status")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


_LARGEST = 2**62  # of numbers
_REVISION = r"^([0-9]+\.[0-9]+(\+[0-9a-f]{16})?)?$"
_TEXT = {"type": "string"}
_SETTINGS_SCHEMA = {
    "type": "object",
    "description": "all settings of the run",
    "properties": {
        **dict.fromkeys(("method", "encoder", "id_set", "prompt"), _TEXT),
        "ood_set": {"type": ["string", "null"]},
        "stream": {"type": "object"},
        "threshold": {"type": "object"},
        "options": {"type": "object"},
    },
    "required": ["method", "encoder", "id_set", "prompt"],
}


def _about(words: str, **more: Any) -> Any:
    """Describe a value in the JSON Schema."""
    return Field(description=words, json_schema_extra=more)


def _as_run(given: Any) -> RunSettings:
    return given if isinstance(given, RunSettings) else run_from_record(given)


def _as_note(given: Any) -> Any:
    """A note of its plain values: a strict model takes none for it."""
    if not isinstance(given, dict):
        return given
    kind, about, text = (str(given.get(name, "")) for name in ("kind", "about", "text"))
    weight = given.get("weight", 0)
    if not isinstance(weight, int | float):
        raise ValueError("must have a number as its weight")
    return RunNote(kind, about, text, weight)


def _plain_run(run: RunSettings) -> dict[str, Any]:
    """Settings as plain values; the preset is a value of the record's own."""
    return {
        "method": run.method, "encoder": run.encoder, "id_set": run.id_set, "ood_set": run.ood_set,
        "prompt": run.prompt, "stream": dict(vars(run.stream)),
        "threshold": dict(vars(run.threshold)), "options": run.options.values(),
    }  # fmt: skip


def _plain(values: Any) -> Any:
    """Metrics with None in the place of nan."""
    if not isinstance(values, dict):
        return values
    return {name: None if value != value else value for name, value in values.items()}


def _measured(values: dict[str, float | None]) -> Measures:
    return Measures((name, math.nan if v is None else v) for name, v in values.items())


def _drawable(curve: Any) -> Any:
    """Refuse lists of different lengths, and cells or points that are none or in no order."""
    if len({len(values) for values in curve.values() if isinstance(values, list)}) != 1:
        raise ValueError("must be lists of one length")
    points = curve["item"] if "item" in curve else [curve.get("low"), curve.get("high")]
    if not points or None in points or any(a >= b for a, b in itertools.pairwise(points)):
        raise ValueError("must have points in ascending order")
    return {**curve, "item": [*map(int, points)]} if "item" in curve else curve


Text = InstanceOf[str]  # names of files need be no UTF-8, which pydantic's own texts are
Number = Annotated[float, Field(ge=0, lt=_LARGEST, allow_inf_nan=False)]
Real = Annotated[float, Field(gt=-_LARGEST, lt=_LARGEST, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=_LARGEST)]
Digest = Annotated[Text, Field(json_schema_extra={"pattern": "^[0-9a-f]{64}$"})]
Share = Annotated[float, Field(ge=-1, lt=_LARGEST, allow_inf_nan=False)]
Line = Annotated[dict[str, list[Real | None]], Field(min_length=2), AfterValidator(_drawable)]


class Histogram(TypedDict):
    """Counts of ID and of OOD samples in equal cells."""

    low: Real
    high: Real
    id: Annotated[list[Count], Field(min_length=2)]
    ood: list[Count]


Cells = Annotated[Histogram, AfterValidator(_drawable)]


class RunCurves(TypedDict, total=False):
    """What figures draw of a run; a method that is not live has no before and no gradients."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    scores: Annotated[Cells, _about("of the ID score")]
    thresholds: Annotated[Line, _about("zero_shot, detector, on the ID score")]
    before: Annotated[Cells, _about("of the ID score before adaptation")]
    difference: Annotated[Cells, _about("after minus before")]
    gradients: Annotated[Line, _about("clean, noisy: norms at each step")]


if TYPE_CHECKING:
    Settings = RunSettings
    Metrics = Measures
    Curves = dict[str, Any]
else:
    Settings = Annotated[
        RunSettings,
        PlainValidator(_as_run), PlainSerializer(_plain_run), WithJsonSchema(_SETTINGS_SCHEMA),
    ]  # fmt: skip
    Metrics = Annotated[
        dict[Text, Share | None],
        BeforeValidator(_plain), AfterValidator(_measured), PlainSerializer(_plain),
        _about("by name: fractions; null without samples"),
    ]  # fmt: skip
    Curves = RunCurves


class Record(BaseModel):
    """A finished run, with all that is needed to run it again and to draw it."""

    model_config = ConfigDict(strict=True, frozen=True, revalidate_instances="never")

    settings: Settings
    accuracies: Metrics = Field(default_factory=Measures)
    detection: Metrics = Field(default_factory=Measures)
    flags: Metrics = Field(default_factory=Measures)
    counts: Annotated[
        dict[Literal["id", "ood", "noise"], Count],
        Field(min_length=3, description="items of each kind in the stream; noise is not judged"),
    ]
    repeated: Annotated[
        dict[Text, Number], _about("sets that were too small: how often their images were shown")
    ] = {}
    digests: Annotated[
        dict[Text, Digest],
        _about("of the feature files; text/ID of the class text and how all are read"),
    ]
    seconds: Annotated[Number, _about("of the method alone")] = 0
    created: Text = ""
    versions: dict[Text, Text]
    unfinished: Annotated[Count, _about("items that Ctrl-C kept a live method from")] = 0
    revision: Annotated[
        Text,
        _about(
            "of the rules and of the method; with digits of its source where it is a user's own",
            pattern=_REVISION,
        ),
    ] = ""
    memory: Annotated[
        Count, _about("bytes: the process's peak, or the GPU's where one was used")
    ] = 0
    device: Text = "cpu"
    notes: Annotated[
        tuple[Annotated[RunNote, BeforeValidator(_as_note)], ...],
        Field(strict=False, description="what a reader of its numbers has to know"),
    ] = ()
    preset: Annotated[Text, _about("the preset that was asked for")] = ""
    command: Annotated[Text, _about("the command line, or the call in Python")] = ""
    features: Annotated[
        dict[Text, Any],
        _about("how the features came to be: shared by all sets, and the rest by set"),
    ] = {}
    own: Annotated[
        dict[Text, Digest],
        _about("the script of a method from outside the package: its SHA-256 by file name"),
    ] = {}
    curves: Annotated[Curves, _about("what figures draw of the run")] = {}

    @property
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
        return self.model_dump(exclude={"curves"})


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
    def judged(self) -> Judged:
        """The decisions on the test samples, in the stream's order; injected items do not count."""
        decisions, method = self.decisions, METHODS[self.settings.method]
        is_test = self.stream.kind != NOISE
        tests = slice(None) if is_test.all() else is_test  # unchanged if nothing is injected
        is_noise = None if decisions.is_noise is None else decisions.is_noise[tests]
        is_probability = method.is_probability and self.settings.threshold.score != MATCH
        of_class = self.frozen_probability
        if method.class_probability == BY_SCORE and is_probability:
            of_class = decisions.id_score
        return Judged(
            self.labels[tests], decisions.class_index[tests], is_noise, decisions.id_score[tests],
            is_probability, None if of_class is None else of_class[tests],
        )  # fmt: skip

    def record(self, command: str = "", curves: "Curves | None" = None) -> Record:
        """The decisions judged on the test samples, with the current time.

        `command` asked for the run; `curves` are what figures draw of it.
        """
        settings, sources = self.settings, self.sources
        of_kind = np.bincount(self.stream.kind, minlength=len(_KINDS)).tolist()
        repeated: dict[str, float] = {}
        for source, count in ((sources.ood_set, of_kind[OOD]), (sources.noise, of_kind[NOISE])):
            if source and count > len(source):
                repeated[source.name] = round(count / len(source), 3)
        return Record(
            settings=settings,
            **measure(self.judged),
            counts=dict(zip(_KINDS, of_kind, strict=True)),
            repeated=repeated,
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
            revision=revision(settings.method) or "",
            own=dict(source_digests(settings.method)),
            memory=self.machine.memory or resident_peak(),
            device=self.machine.device,
            notes=tuple(run_notes(settings, sources)),
            preset=settings.preset,
            command=command,
            features=dict(self.features),
            curves=curves or {},
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
