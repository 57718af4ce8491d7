"""An experiment file: which runs are made, and which tables and figures show them.

docs/experiments.md has all keys, which may be written with dashes or underscores. The whole file is
checked before anything is run; an error names the file, the table and the key. Paths in it are
relative to its folder.
"""

import json
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from zsntta_cli.errors import SettingsError, StoreError, first_line, near, short
from zsntta_cli.files import read_input
from zsntta_cli.methods import METHODS, check_method, find_method
from zsntta_cli.results.exchange import first_fault
from zsntta_cli.results.frame import Filters, shown
from zsntta_cli.results.grid import EVERY, Grid
from zsntta_cli.settings import DATA, FEATURES, EncoderChoice, parse_ratio
from zsntta_cli.settings.options import option_name, value_type
from zsntta_cli.simulation.runs import RunSettings, declared, no_setting

_LARGEST = 2**22  # bytes of a file
_NONE = ("none", "adaptive")  # what stands for a setting that has no value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _in_folder(value: Any, info: ValidationInfo) -> Any:
    """A path relative to the folder of the file."""
    assert isinstance(info.context, Path)
    return info.context.parent / value if isinstance(value, str) else value


def _encoder(value: Any, info: ValidationInfo) -> Any:
    """An encoder: the folder of its features, or a table that names a model."""
    if isinstance(value, EncoderChoice):  # the default
        return value
    if isinstance(value, str):
        return EncoderChoice(folder=value)
    if not isinstance(value, dict):
        raise SettingsError("it must be the name of a folder, or a table with a model.")
    _check_keys(value, ("model", "pretrained", "precision", "folder"))
    wrong = [name for name, text in value.items() if not isinstance(text, str)]
    if wrong:
        raise SettingsError(f"{wrong[0]} must be a text.")
    if (weights := _in_folder(value.get("pretrained", ""), info)).is_file():
        value = value | {"pretrained": str(weights)}
    return EncoderChoice(**{name: text for name, text in value.items() if text})


def _check_keys(names: Collection[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            words = f"is no key{near(name, known)}: known are {', '.join(known)}."
            raise SettingsError(f"{short(name)} {words}")


Texts = Annotated[list[str], BeforeValidator(_listed)]
InFolder = Annotated[Path, BeforeValidator(_in_folder)]
Encoder = Annotated[InstanceOf[EncoderChoice], BeforeValidator(_encoder)]
Values = dict[str, Any]  # of settings: a value or a list of values each


class FileTable(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(strict=True, validate_default=True, populate_by_name=False)

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, plain: Any) -> Any:
        if not isinstance(plain, dict):
            return plain
        keys = {name.replace("-", "_"): value for name, value in plain.items()}
        if len(keys) < len(plain):
            raise SettingsError("it has a key twice, with dashes and with underscores.")
        _check_keys(keys, [f.alias or name for name, f in cls.model_fields.items()])
        return keys


class RunBlock(FileTable):
    """One [[runs]] table: all combinations of the values that it names."""

    methods: Annotated[Texts, Field(min_length=1)]
    id: Texts = []
    ood: Texts = []  # if none is named, the cached partners of each ID set, or a clean stream
    presets: Texts = []
    prompts: Texts = []
    settings: Values = {}
    own: dict[str, Values] = {}  # by method, each for that method alone
    encoder: Encoder = EncoderChoice()

    @model_validator(mode="after")
    def _check(self) -> "RunBlock":
        for method in self.methods:
            if method != EVERY:
                check_method(method, "methods")
        for method in self.own:
            check_method(method, "own: method")
        _ = self.grid
        return self

    @property
    def grid(self) -> Grid:
        """The runs of the table."""
        own = {m: _settings(values, [m], where=f"own, {m}: ") for m, values in self.own.items()}
        axes = _settings(self.settings, _expanded(self.methods))
        return Grid(
            self.methods, self.encoder, self.id, self.ood, self.prompts, self.presets, axes, own
        )


class _Showing(FileTable):
    """Which runs a table or a figure shows."""

    methods: Texts = []
    id: Texts = []
    ood: Texts = []
    ratio: Annotated[list[Any], BeforeValidator(_listed)] = []
    seed: Annotated[list[int], BeforeValidator(_listed)] = []
    encoders: Texts = []
    settings: Values = {}

    @model_validator(mode="after")
    def _check(self) -> "_Showing":
        _ = self.filters
        return self

    @property
    def filters(self) -> Filters:
        """The runs that are shown."""
        here = [method for method in self.methods if find_method(method)]
        settings = _settings(self.settings, _expanded(here), ("preset", "prompt"))
        texts = {name: [shown(name, value) for value in some] for name, some in settings.items()}
        ratios = [parse_ratio(str(ratio)) for ratio in self.ratio]
        return Filters(self.methods, self.id, self.ood, ratios, self.seed, self.encoders, texts)


class TableRequest(_Showing):
    """One [[tables]] table."""

    output: InFolder | None = None  # None: stdout
    format: str = ""
    report: str = "accuracy"
    spread: str = "seeds"
    caption: str = ""
    label: str = ""
    columns: Texts = []
    aggregate: bool = False
    names: dict[str, str] = {}

    @property
    def view(self) -> dict[str, Any]:
        """What report.tables.View takes."""
        return {
            "report": self.report, "spread": self.spread, "caption": self.caption,
            "reference": self.label, "metrics": tuple(self.columns), "aggregate": self.aggregate,
            "labels": self.names,
        }  # fmt: skip


class FigureRequest(_Showing):
    """One [[figures]] table."""

    kind: str
    output: InFolder
    metric: str | None = None
    width: float = 3.3


class Experiment(FileTable):
    """The content of an experiment file."""

    features: InFolder = FEATURES
    records: InFolder | None = None  # None: beside the features
    data: InFolder = DATA
    encoder: Encoder = EncoderChoice()
    datasets: dict[str, InFolder] = {}  # images of live methods
    blocks: list[RunBlock] = Field([], alias="runs")
    tables: list[TableRequest] = []
    figures: list[FigureRequest] = []

    @model_validator(mode="after")
    def _check(self) -> "Experiment":
        if not self.blocks:
            raise SettingsError("it has nothing to run: add a table [[runs]] with methods.")
        for block in self.blocks:
            if "encoder" not in block.model_fields_set:
                block.encoder = self.encoder
        return self

    @property
    def sets(self) -> tuple[str, ...]:
        """NAME=PATH of images of live methods."""
        return tuple(f"{name}={path}" for name, path in self.datasets.items())

    def notes(self) -> list[str]:
        """What is to be said of its methods, as lines, each once."""
        notes = (note for block in self.blocks for note in block.grid.notes(self.features))
        return list(dict.fromkeys(notes))

    def runs(self) -> list[RunSettings]:
        """All runs of all blocks, each once.

        Raises:
            SettingsError: a block cannot be run; the message names it.
            StoreError: no OOD set for a ratio above 0.
        """
        runs: list[RunSettings] = []
        for i, block in enumerate(self.blocks, 1):
            try:
                runs += block.grid.runs(self.features)
            except SettingsError as error:
                raise SettingsError(f"[[runs]] {i}: {error}") from error
        return list(dict.fromkeys(runs))


def read_experiment(path: Path) -> Experiment:
    """The experiment that a file describes.

    Raises:
        StoreError: the file cannot be read.
        SettingsError: the file is no TOML, or a key or a value in it is wrong.
    """
    try:
        plain = tomllib.loads(read_input(path, _LARGEST).decode())
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is no TOML: {first_line(error)}") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path} ({first_line(error)}).") from error
    if "\\u0000" in json.dumps(plain, default=str):
        raise SettingsError(f"{path} has a NUL, which no name or path has.")
    try:
        return Experiment.model_validate(plain, context=path)
    except ValidationError as error:
        raise SettingsError(f"{path}: {first_fault(error).removesuffix('.')}.") from error


def _expanded(methods: Sequence[str]) -> Sequence[str]:
    """The methods whose settings a table may have: those that it names, or all."""
    return tuple(METHODS) if not methods or EVERY in methods else methods


def _settings(
    plain: Mapping[str, Any], methods: Sequence[str], more: Sequence[str] = (), where: str = ""
) -> dict[str, list[Any]]:
    """Settings of some methods, each with a list of values.

    `more` are texts that a filter has beside the settings.

    Raises:
        SettingsError: a key is no setting of the methods.
    """
    fields = {name: field for method in methods for name, field in declared(method).items()}
    names = {option_name(field).replace("-", "_"): name for name, field in fields.items()}
    names |= {name: name for name in (*fields, *more)}  # the option of `fixed` is `threshold`
    settings: dict[str, list[Any]] = {}
    for written, value in plain.items():
        name = names.get(written.replace("-", "_"), "")
        if not name:
            wrong = no_setting(written.replace("_", "-"), methods).partition(" ")[2]
            raise SettingsError(
                f"{where}{short(written)} {wrong}: zsntta methods show NAME lists those of a method"
            )
        optional = name in fields and value_type(fields[name])[1]
        settings[name] = [None if optional and v in _NONE else v for v in _listed(value)]
    return settings
