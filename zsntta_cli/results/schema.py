"""The schema of a line of kept runs: what a file from elsewhere is held to, and its JSON Schema.

docs/record.schema.json is made of it (tools/record_schema.py). It is of the types; names and values
of settings are checked by their own classes. What a newer version adds is passed over, but for
curves. pydantic takes a tenth of a second to import, so nothing but the readers of files does.
"""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from zsntta_cli.errors import SettingsError, short

_LARGEST = 2**62  # of numbers

Text = InstanceOf[str]  # names of files need be no UTF-8, which pydantic's own texts are
Number = Annotated[float, Field(ge=0, lt=_LARGEST, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=_LARGEST)]
Digest = Annotated[Text, Field(json_schema_extra={"pattern": "^[0-9a-f]{64}$"})]
Value = Annotated[Any, WithJsonSchema({"type": ["number", "boolean", "string", "null"]})]
Metrics = Annotated[
    dict[Text, Number | None],
    Field(description="by name: fractions, where a metric is a share; null without samples"),
]


class _Read(BaseModel):
    model_config = ConfigDict(strict=True)


class _Written(_Read):
    """What this version always writes, whether or not it must be there to be read."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class RunPart(_Written):
    """All settings of the run."""

    method: Text
    encoder: Annotated[Text, Field(description="the folder name of the encoder's features")]
    id_set: Text
    ood_set: Text | None = None
    prompt: Annotated[Text, Field(description="a template with one {}")]
    stream: dict[Text, Value] = {}
    threshold: dict[Text, Value] = {}
    options: Annotated[dict[Text, Value], Field(description="the method's own settings")] = {}


class CountsPart(_Read):
    """Items of each kind in the stream."""

    id: Count
    ood: Count
    noise: Annotated[Count, Field(description="injected items, which are not judged")]


class RecordedPart(_Written):
    """A run that can be repeated: its settings and the features that it saw."""

    settings: RunPart
    digests: Annotated[
        dict[Text, Digest],
        Field(description="of the feature files; text/ID of the class text and how all are read"),
    ]


class RecordPart(RecordedPart):
    """What the run was and gave: what simulate --format json writes."""

    accuracies: Metrics = {}
    detection: Metrics = {}
    flags: Metrics = {}
    counts: CountsPart
    repeated: Annotated[
        dict[Text, Number],
        Field(description="sets that were too small: how often their images were shown"),
    ] = {}
    seconds: Annotated[Number, Field(description="of the method alone")] = 0
    created: Text = ""
    versions: dict[Text, Text]
    unfinished: Literal[0] = 0
    revision: Annotated[
        Text,
        Field(
            description="of the rules and of the method; with digits of its source where it is "
            "one of a user's own",
            json_schema_extra={"pattern": r"^([0-9]+\.[0-9]+(\+[0-9a-f]{16})?)?$"},
        ),
    ] = ""
    memory: Annotated[
        Count, Field(description="bytes: the process's peak, or the GPU's where one was used")
    ] = 0
    device: Text = ""


Numbers = list[Annotated[float, Field(allow_inf_nan=False)] | None]


class HistogramPart(_Read):
    """Counts of ID and of OOD samples in equal cells."""

    model_config = ConfigDict(extra="forbid")

    low: Annotated[float, Field(allow_inf_nan=False)]
    high: Annotated[float, Field(allow_inf_nan=False)]
    id: list[Count]
    ood: list[Count]

    @model_validator(mode="after")
    def _are_of_one_length(self) -> "HistogramPart":
        return _of_one_length(self, self.id, self.ood)


class LinePart(_Read):
    """Values at some items of the stream, or at each step."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Numbers]

    item: list[Count]

    @model_validator(mode="after")
    def _are_of_one_length(self) -> "LinePart":
        return _of_one_length(self, self.item, *(self.__pydantic_extra__ or {}).values())


def _of_one_length(curve: Any, *lists: list[Any]) -> Any:
    if len({len(values) for values in lists}) > 1:
        raise ValueError("must be lists of one length")
    return curve


_ABSENT: Any = None  # of what may be missing, and is not null


class CurvesPart(_Read):
    """What figures draw of the run; a method that is not live has no before and no gradients."""

    model_config = ConfigDict(extra="forbid")

    scores: HistogramPart = Field(default=_ABSENT, description="of the ID score")
    before: HistogramPart = Field(default=_ABSENT, description="of the ID score before adaptation")
    difference: HistogramPart = Field(default=_ABSENT, description="after minus before")
    running: LinePart = Field(default=_ABSENT, description="acc_s, acc_n of the items so far")
    thresholds: LinePart = Field(
        default=_ABSENT, description="zero_shot, detector, on the ID score"
    )
    gradients: LinePart = Field(default=_ABSENT, description="clean, noisy: norms at each step")


class RecordedLine(_Written):
    """A line of which only the run is wanted, to be repeated."""

    format: Literal[1] = 1
    record: RecordedPart


class RecordLine(_Written):
    """A kept run: a line of what `zsntta records export` writes."""

    format: Literal[1] = 1
    key: Annotated[
        Digest,
        Field(
            description="of what decides the numbers: settings that are not defaults, digests, "
            "revision"
        ),
    ] = ""
    record: RecordPart
    curves: CurvesPart = CurvesPart()
    items: Annotated[
        Text | None,
        Field(
            description="zlib of the class index of each test sample in the stream's order "
            "(little-endian uint16), then a byte each: bit 0 called noise, bit 1 right",
            json_schema_extra={"contentEncoding": "base64"},
        ),
    ] = None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the lines that this version writes."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return draft | _without_titles(RecordLine.model_json_schema(mode="serialization"))


def _without_titles(schema: Any) -> Any:
    """A schema without pydantic's titles, which are the names again, and without defaults."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: _without_titles(v) for k, v in schema.items() if k not in ("title", "default")}


def check_schema(schema: type[BaseModel], plain: Any) -> None:
    """Hold what a line is to its schema.

    Raises:
        SettingsError: the first thing that is wrong: where, what it is, what would be right.
    """
    try:
        schema.model_validate(plain)
    except ValidationError as error:
        raise SettingsError(_worded(error)) from error


# By pydantic's kinds of errors; what it says itself of all others begins as that of these does.
_MUST_BE = {
    "is_instance_of": "a text",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}
_SAYS = {"missing": "is missing", "extra_forbidden": "is not known"}


def _worded(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    kind, place = first["type"], [ascii(str(part))[1:-1] for part in first["loc"]]
    where = ".".join(place[1:] if place[:1] == ["record"] and len(place) > 1 else place) or "it"
    if kind in _SAYS:
        return f"{short(where)} {_SAYS[kind]}"
    said = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    must = f"must be {_MUST_BE.get(kind, said.removeprefix('must be '))}"
    return f"{short(where)} is {_shown(first['input'])}, {must}"


def _shown(value: Any) -> str:
    """A value as JSON names it, cut to one short line."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    names = {None: "null", True: "true", False: "false"}
    is_named = value is None or isinstance(value, bool)
    return names[value] if is_named else short(ascii(value))
