"""A record: a finished run, with everything that made it.

It is described here and nowhere else: a replay makes it, the store keeps it, a line of an export is
one, and docs/record.schema.json is its JSON Schema. What comes from elsewhere is read by pydantic,
by these annotations (results/exchange.py).
"""

# ruff: noqa: RUF009 (its fields are described by a function)

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

from annotated_types import Ge, Gt, Lt, MaxLen, MinLen
from pydantic import AfterValidator
from typing_extensions import TypedDict

from zsntta_cli.simulation.metrics import METRICS, Measures, Metric
from zsntta_cli.simulation.notes import RunNote
from zsntta_cli.simulation.runs import RunSettings, run_key

KINDS = ("id", "ood", "noise")  # by ID, OOD, NOISE
MOST_CLASSES = 200  # that are counted one by one
_LARGEST = 2**62  # of numbers
_GROUPS = ("accuracies", "detection", "flags")  # of metrics

Count = Annotated[int, Ge(0), Lt(_LARGEST)]
Number = Annotated[float, Ge(0), Lt(_LARGEST)]
Real = Annotated[float, Gt(-_LARGEST), Lt(_LARGEST)]


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


# Curves: what figures draw of a run, short lists of numbers.


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


class Histogram(TypedDict):
    """Counts of ID and of OOD samples in bins of equal width."""

    low: Real
    high: Real
    id: Annotated[list[Count], MinLen(2)]
    ood: list[Count]


class Classes(TypedDict):
    """Counts by class: images, how many were classified correctly and how many called noise.

    `noise` is missing for a method that does not decide. `confused_with` is the index of the class
    that most of the wrongly classified images were taken for; -1 if there are none.
    """

    names: Annotated[list[str], MinLen(1), MaxLen(MOST_CLASSES)]
    images: list[Count]
    right: list[Count]
    noise: NotRequired[list[Count]]
    confused_with: list[Annotated[int, Ge(-1)]]


_Cells = Annotated[Histogram, AfterValidator(_drawable)]
_Line = Annotated[dict[str, list[Real | None]], MinLen(2), AfterValidator(_drawable)]


class RunCurves(TypedDict, total=False):
    """What figures draw of a run: the ID score, and its thresholds `zero_shot` and `detector`.

    `classes` is what the page shows by class, if there are at most 200. A live method also has the
    score before adaptation, the difference that adaptation made, and possibly the norms of the
    gradients, `clean` and `noisy`, at each step.
    """

    __pydantic_config__ = {"extra": "forbid"}  # type: ignore[misc]  # noqa: RUF012

    scores: _Cells
    thresholds: _Line
    before: _Cells
    difference: _Cells
    gradients: _Line
    classes: Annotated[Classes, AfterValidator(_drawable)]


def measured(values: Mapping[str, float | None]) -> Measures:
    """Metrics from a record's plain values, which have None instead of nan."""
    return Measures((name, math.nan if v is None else v) for name, v in values.items())


if TYPE_CHECKING:
    Settings = RunSettings
    Metrics = Measures
    Curves = dict[str, Any]
    Counts = dict[str, int]
else:
    _Value = Annotated[float, Ge(-1), Lt(_LARGEST)] | None
    Settings = Annotated[PlainRun, AfterValidator(RunSettings.of)]
    Metrics = Annotated[dict[str, _Value], AfterValidator(measured)]
    Curves, Counts = RunCurves, Annotated[dict[Literal[KINDS], Count], MinLen(3)]


def _is(words: str, usual: Any) -> Any:
    """Describe a value in the JSON Schema; its default is `usual`, or what that class makes."""
    kind = "default_factory" if isinstance(usual, type) else "default"
    return field(metadata={"description": words}, **{kind: usual})


_FRACTIONS = "fractions by name; null without samples"


@dataclass(frozen=True)
class Record:
    """A finished run, with everything needed to run it again and to draw it."""

    settings: Settings
    counts: Counts = field(metadata={
        "description": "items of each kind in the stream; injected ones (noise) enter no metric",
    })  # fmt: skip
    digests: dict[str, str] = field(metadata={
        "description": "of the feature files; text/ID: of the class text and how all are read",
    })  # fmt: skip
    versions: dict[str, str]
    accuracies: Metrics = _is(_FRACTIONS, Measures)
    detection: Metrics = _is(_FRACTIONS, Measures)
    flags: Metrics = _is(_FRACTIONS, Measures)
    repeated: dict[str, Number] = _is(
        "for sets that were too small, how often their images were shown", dict
    )
    seconds: Number = _is("for the method alone", 0.0)
    created: str = ""
    unfinished: Count = _is("items left when Ctrl-C stopped a live method", 0)
    revision: str = _is(
        "of the rules and of the method; for a user's own method, with digits of its source", ""
    )
    memory: Count = _is("peak bytes of the process, or of the GPU if one was used", 0)
    device: str = "cpu"
    notes: tuple[RunNote, ...] = _is("what a reader of its numbers must know", ())
    preset: str = _is("the requested preset", "")
    command: str = _is("the command line, or the call in Python", "")
    features: dict[str, Any] = _is(
        "how the features were made: what all sets share, and the rest by set", dict
    )
    own: dict[str, str] = _is(
        "the SHA-256, by file name, of the script of a method from elsewhere", dict
    )
    curves: Curves = _is("what figures show of the run", dict)

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
        plain = {**vars(self), "settings": self.settings.plain()}
        del plain["curves"]
        plain.pop("key", None)  # cached
        for group in _GROUPS:
            plain[group] = {k: None if math.isnan(v) else v for k, v in plain[group].items()}
        return {**plain, "notes": [*map(dict, map(vars, self.notes))]}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> "Record":
        """The record of plain values that `to_dict` gave, here or in an earlier run.

        Raises:
            StoreError: the code of its method is missing.
            TypeError, KeyError, SettingsError: another version made them.
        """
        groups = {name: measured(plain[name]) for name in _GROUPS}
        notes = tuple(RunNote(**note) for note in plain["notes"])
        run = RunSettings.of(plain["settings"])
        return cls(**{**plain, **groups, "settings": run, "notes": notes})
