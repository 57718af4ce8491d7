"""An experiment file: which runs are made, and which tables and figures show them.

docs/experiments.md has all keys, which may be written with dashes or underscores. The whole file is
checked before anything is run; an error names the file, the table and the key. Paths in it are
relative to its folder.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
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
from zsntta_cli.results.frame import shown
from zsntta_cli.results.grid import ALL, Grid
from zsntta_cli.results.selection import Filters
from zsntta_cli.settings import DATA, FEATURES, EncoderChoice, parse_ratio
from zsntta_cli.settings.options import check, option_name, value_type
from zsntta_cli.simulation.runs import RunSettings, declared, no_setting

_LARGEST = 2**22  # bytes of a file
_NONE = ("none", "adaptive")  # what stands for a setting that has no value


def _known(plain: Any, keys: Sequence[str]) -> Any:
    """A table with underscores in its keys, all of which are known."""
    if not isinstance(plain, dict):
        return plain
    values = {name.replace("-", "_"): value for name, value in plain.items()}
    for name in values:
        what = f"{short(name)} is not a key{near(name, keys)}: the keys are {', '.join(keys)}."
        check(name in keys, what)
    return values


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _in_folder(value: Any, info: ValidationInfo) -> Any:
    """A path relative to the folder of the file, which is the context of all but defaults."""
    if isinstance(value, str) and "\0" in value:
        raise SettingsError(f"{value!r} has a NUL, which no path may have.")
    return (info.context or Path()).parent / value if isinstance(value, str) else value


def _encoder(value: Any, info: ValidationInfo) -> Any:
    """An encoder: a model, or the folder of its features."""
    if isinstance(value, dict):
        value = _known(value, list(EncoderChoice.__dataclass_fields__))
        weights = _in_folder(value.get("pretrained"), info)
        if isinstance(weights, Path) and weights.is_file():
            value["pretrained"] = str(weights)
        return EncoderChoice(**value)
    if isinstance(value, str):
        return EncoderChoice(folder=value)
    is_one = value is None or isinstance(value, EncoderChoice)
    check(is_one, f"it is {short(str(value))}, must be the name of a folder or a table.")
    return value


Several = BeforeValidator(_listed)
Texts = Annotated[list[str], Several]
InFolder = Annotated[Path, BeforeValidator(_in_folder)]
Encoder = Annotated[InstanceOf[EncoderChoice], BeforeValidator(_encoder)]
Values = dict[str, Any]  # of settings: a value or a list of values each


class FileTable(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(strict=True, validate_default=True, populate_by_name=False)

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, plain: Any) -> Any:
        return _known(plain, [f.alias or name for name, f in cls.model_fields.items()])


class RunBlock(FileTable):
    """One [[runs]] table: all combinations of the values that it names."""

    methods: Annotated[Texts, Field(min_length=1)]
    id: Texts = []
    ood: Texts = []  # if none is named, the cached partners of each ID set, or a clean stream
    presets: Texts = []
    prompts: Texts = []
    settings: Values = {}
    own: dict[str, Values] = {}  # by method, each for that method alone
    encoder: Encoder | None = None  # None: that at the top

    def grid(self, usual: EncoderChoice) -> Grid:
        """The runs of the table; the encoder is `usual` unless the table names one."""
        own = {m: _settings(values, [m], where=f"own, {m}: ") for m, values in self.own.items()}
        return Grid(
            self.methods, self.encoder or usual, self.id, self.ood, self.prompts, self.presets,
            _settings(self.settings, self.methods), own,
        )  # fmt: skip


class _Showing(FileTable):
    """Which runs a table or a figure shows."""

    methods: Texts = []
    id: Texts = []
    ood: Texts = []
    ratio: Annotated[list[Any], Several] = []
    seed: Annotated[list[int], Several] = []
    encoders: Texts = []
    settings: Values = {}

    @model_validator(mode="after")
    def _check(self) -> "_Showing":
        _ = self.filters
        return self

    @cached_property
    def filters(self) -> Filters:
        """The runs that are shown."""
        here = [method for method in self.methods if find_method(method)]
        settings = _settings(self.settings, here, ("preset", "prompt"))
        wanted: Filters = {
            "method": self.methods, "id": self.id, "ood": self.ood,
            "ratio": [parse_ratio(str(ratio)) for ratio in self.ratio], "seed": self.seed,
            "encoder": self.encoders,
            **{name: [shown(name, value) for value in of] for name, of in settings.items()},
        }  # fmt: skip
        return {name: values for name, values in wanted.items() if values}


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
    blocks: list[RunBlock] = Field(alias="runs", min_length=1)
    tables: list[TableRequest] = []
    figures: list[FigureRequest] = []

    def runs(self) -> tuple[list[RunSettings], list[str]]:
        """All runs of all blocks, each once, and the notes on them.

        Raises:
            SettingsError: a block cannot be run; the message names it.
            StoreError: no OOD set for a ratio above 0.
        """
        runs, notes = list[RunSettings](), list[str]()
        for i, block in enumerate(self.blocks, 1):
            try:
                grid = block.grid(self.encoder)
                runs += grid.runs(self.features)
            except SettingsError as error:
                raise SettingsError(f"[[runs]] {i}: {error}") from error
            notes += grid.notes(self.features)
        return list(dict.fromkeys(runs)), list(dict.fromkeys(notes))


def read_experiment(path: Path) -> Experiment:
    """The experiment that a file describes.

    Raises:
        StoreError: the file cannot be read.
        SettingsError: the file is not TOML, or a key or a value in it is wrong.
    """
    try:
        plain = tomllib.loads(read_input(path, _LARGEST).decode())
        return Experiment.model_validate(plain, context=path)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not TOML: {first_line(error)}") from error
    except ValidationError as error:
        raise SettingsError(f"{path}: {first_fault(error).removesuffix('.')}.") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path} ({first_line(error)}).") from error


def _settings(
    plain: Mapping[str, Any], methods: Sequence[str], more: Sequence[str] = (), where: str = ""
) -> dict[str, list[Any]]:
    """Settings of some methods, or of all where none or ALL is named, each with a list of values.

    `more` are texts that a filter has beside the settings.

    Raises:
        SettingsError: a key is not a setting of the methods, or there is no such method.
    """
    methods = tuple(METHODS) if not methods or ALL in methods else methods
    for method in methods:
        check_method(method, f"{where}method")
    fields = {name: field for method in methods for name, field in declared(method).items()}
    names = {option_name(field).replace("-", "_"): name for name, field in fields.items()}
    names |= {name: name for name in (*fields, *more)}  # the option of `fixed` is `threshold`
    settings: dict[str, list[Any]] = {}
    for written, value in plain.items():
        name = names.get(written.replace("-", "_"), "")
        if not name:
            wrong = no_setting(written.replace("_", "-"), methods).partition(" ")[2]
            raise SettingsError(
                f"{where}{short(written)} {wrong}: zsntta methods show NAME lists a method's"
            )
        optional = name in fields and value_type(fields[name])[1]
        settings[name] = [None if optional and v in _NONE else v for v in _listed(value)]
    return settings
