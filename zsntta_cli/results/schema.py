"""The schema of a line of kept runs, which checks files from elsewhere, and its JSON Schema.

docs/record.schema.json is generated from it (tools/record_schema.py). It checks types; names and
values of settings are checked by their own classes. Keys that it does not name are ignored,
except in curves. Importing pydantic takes 0.1 s, so only the readers of files import it.
"""

import json
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails

from zsntta_cli.errors import SettingsError, short

_LARGEST = 2**62  # of numbers
_ABSENT: Any = None  # the default of what may be missing, and is not null
_REVISION = r"^([0-9]+\.[0-9]+(\+[0-9a-f]{16})?)?$"


def _about(words: str, **more: Any) -> Any:
    """Describe a value in JSON Schema; only its type is checked."""
    return Field(description=words, json_schema_extra=more)


AnyText = InstanceOf[str]  # names of files need be no UTF-8, which pydantic's own texts are
Number = Annotated[float, Field(ge=0, lt=_LARGEST, allow_inf_nan=False)]
AnyNumber = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=_LARGEST)]
Digest = Annotated[AnyText, Field(json_schema_extra={"pattern": "^[0-9a-f]{64}$"})]
Options = dict[
    AnyText, Annotated[Any, WithJsonSchema({"type": ["number", "boolean", "string", "null"]})]
]
Metrics = Annotated[
    dict[AnyText, Annotated[float, Field(ge=-1, lt=_LARGEST, allow_inf_nan=False)] | None],
    _about(
        "by name: fractions, where a metric is a share or a difference of two; null without samples"
    ),
]


class _Read(BaseModel):
    model_config = ConfigDict(strict=True)


class _Written(_Read):
    """A value that this version always writes, whether or not a reader requires it."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class RunPart(_Written):
    """All settings of the run."""

    method: AnyText
    encoder: Annotated[AnyText, _about("the folder name of the encoder's features")]
    id_set: AnyText
    ood_set: AnyText | None = None
    prompt: Annotated[AnyText, _about("a template with one {}")]
    stream: Options = {}
    threshold: Options = {}
    options: Annotated[Options, _about("the method's own settings")] = {}


class CountsPart(_Read):
    """Items of each kind in the stream."""

    id: Count
    ood: Count
    noise: Annotated[Count, _about("injected items, which are not judged")]


class NotePart(_Read):
    """A sentence on a run; of several runs' notes of one kind and about, the heaviest is shown."""

    kind: AnyText
    about: AnyText
    text: AnyText
    weight: AnyNumber = 0


class RecordedPart(_Written):
    """A run that can be repeated: its settings and the features that it saw."""

    settings: RunPart
    digests: Annotated[
        dict[AnyText, Digest],
        _about("of the feature files; text/ID of the class text and how all are read"),
    ]
    own: Annotated[
        dict[AnyText, Digest],
        _about("the script of a method from outside the package: its SHA-256 by file name"),
    ] = {}
    features: Annotated[
        dict[AnyText, Any],
        _about("how the features came to be: shared by all sets, and the rest by set"),
    ] = {}


class RecordPart(RecordedPart):
    """What the run was and gave: what simulate --format json writes."""

    accuracies: Metrics = {}
    detection: Metrics = {}
    flags: Metrics = {}
    counts: CountsPart
    repeated: Annotated[
        dict[AnyText, Number], _about("sets that were too small: how often their images were shown")
    ] = {}
    seconds: Annotated[Number, _about("of the method alone")] = 0
    created: AnyText = ""
    versions: dict[AnyText, AnyText]
    unfinished: Literal[0] = 0
    revision: Annotated[
        AnyText,
        _about(
            "of the rules and of the method; with digits of its source where it is a user's own",
            pattern=_REVISION,
        ),
    ] = ""
    memory: Annotated[
        Count, _about("bytes: the process's peak, or the GPU's where one was used")
    ] = 0
    device: AnyText = ""
    notes: Annotated[list[NotePart], _about("what a reader of its numbers has to know")] = []
    preset: Annotated[AnyText, _about("the preset that was asked for")] = ""
    command: Annotated[AnyText, _about("the command line, or the call in Python")] = ""


class _OfOneLength(_Read):
    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        """Refuse lists of different lengths."""
        if len({len(values) for _, values in self if isinstance(values, list)}) > 1:
            raise ValueError("must be lists of one length")
        return self


class HistogramPart(_OfOneLength):
    """Counts of ID and of OOD samples in equal cells."""

    model_config = ConfigDict(extra="forbid")

    low: AnyNumber
    high: AnyNumber
    id: list[Count]
    ood: list[Count]


class LinePart(_OfOneLength):
    """Values at some items of the stream, or at each step."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, list[AnyNumber | None]]

    item: list[Count]


class CurvesPart(_Read):
    """What figures draw of the run; a method that is not live has no before and no gradients."""

    model_config = ConfigDict(extra="forbid")

    scores: Annotated[HistogramPart, _about("of the ID score")] = _ABSENT
    before: Annotated[HistogramPart, _about("of the ID score before adaptation")] = _ABSENT
    difference: Annotated[HistogramPart, _about("after minus before")] = _ABSENT
    running: Annotated[LinePart, _about("acc_s, acc_n of the items so far")] = _ABSENT
    windows: Annotated[LinePart, _about("acc_s, acc_n of the items since the last one")] = _ABSENT
    thresholds: Annotated[LinePart, _about("zero_shot, detector, on the ID score")] = _ABSENT
    gradients: Annotated[LinePart, _about("clean, noisy: norms at each step")] = _ABSENT


class RecordedLine(_Written):
    """A line of which only the run is wanted, to be repeated."""

    format: Literal[1] = 1
    record: RecordedPart


class RecordLine(_Written):
    """A kept run: a line of what `zsntta records export` writes."""

    format: Literal[1] = 1
    key: Annotated[
        Digest,
        _about("of what decides the numbers: settings that are not defaults, digests, revision"),
    ] = ""
    record: RecordPart
    curves: CurvesPart = CurvesPart()


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the lines that this version writes."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return draft | _without_titles(RecordLine.model_json_schema(mode="serialization"))


def _without_titles(schema: Any) -> Any:
    """A schema without pydantic's titles, which repeat the names, and without defaults."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: _without_titles(v) for k, v in schema.items() if k not in ("title", "default")}


def check_schema(schema: type[BaseModel], plain: Any) -> None:
    """Check what a line holds against its schema.

    Raises:
        SettingsError: something is wrong; the message says of the first fault where it is and what
            would be right.
    """
    try:
        schema.model_validate(plain)
    except ValidationError as error:
        raise SettingsError(_worded(error)) from error


# By pydantic's kinds of errors; what it says itself of all others begins as that of these does.
_MUST_BE = {
    "is_instance_of": "a text",
    "string_type": "a text",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}
_SAYS = {"missing": "is missing", "extra_forbidden": "is not known"}


def _worded(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    place = [ascii(str(part))[1:-1] for part in first["loc"]]
    where = ".".join(place[1:] if place[:1] == ["record"] and len(place) > 1 else place) or "it"
    return fault_text(where, first)


def fault_text(where: str, fault: ErrorDetails) -> str:
    """What is wrong with a value, and what would be right, of pydantic's words on it."""
    kind = fault["type"]
    if kind in _SAYS:
        return f"{short(where)} {_SAYS[kind]}"
    message = fault["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    must = f"must be {_MUST_BE.get(kind, message.removeprefix('must be '))}"
    return f"{short(where)} is {_shown(fault['input'])}, {must}"


def _shown(value: Any) -> str:
    """A value as JSON names it, cut to one short line."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    is_named = value is None or isinstance(value, bool)
    return json.dumps(value) if is_named else short(ascii(value))
