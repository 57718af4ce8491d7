"""An experiment as a TOML file: what is run, and which tables and figures are made of it.

docs/experiments.md has all of its keys. A file is checked whole before anything is run: an error
names the file, the table and the key. Paths in it are relative to its folder.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from zsntta_cli.errors import SettingsError, StoreError, first_line, near, short
from zsntta_cli.files import read_input
from zsntta_cli.methods import check_method
from zsntta_cli.results import NAME
from zsntta_cli.results.frame import shown
from zsntta_cli.results.grid import Axes, Grid
from zsntta_cli.results.selection import Filters
from zsntta_cli.settings import DATA, FEATURES, EncoderChoice
from zsntta_cli.settings.options import option_name, value_type
from zsntta_cli.simulation.runs import RunSettings, declared, setting_names

T = TypeVar("T")
_LARGEST = 2**22  # bytes of a file
_NONE = ("none", "adaptive")  # what stands for a setting that has no value


class SetPairs(NamedTuple):
    """An ID set and the OOD sets beside it; none: its cached partners, or a clean stream."""

    id_set: str
    ood_sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunBlock:
    """One [[runs]] table: all combinations of what it names."""

    methods: tuple[str, ...]
    encoder: EncoderChoice
    pairs: tuple[SetPairs, ...] = ()  # none: the encoder's usual ID set
    presets: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    axes: Axes = field(default_factory=dict)
    own: Mapping[str, Axes] = field(default_factory=dict)

    def grids(self) -> list[Grid]:
        """Its runs as grids, one for each ID set."""
        return [
            Grid(
                self.methods, self.encoder, [pair.id_set] * bool(pair.id_set), pair.ood_sets,
                self.prompts, self.presets, self.axes, self.own,
            )
            for pair in self.pairs or (SetPairs(""),)
        ]  # fmt: skip

    def runs(self, root: Path) -> list[RunSettings]:
        """All of its runs, each once.

        Raises:
            SettingsError: a value out of its range, a setting that no method has.
            StoreError: no OOD set for a ratio above 0.
        """
        return list(dict.fromkeys(run for grid in self.grids() for run in grid.runs(root)))


@dataclass(frozen=True)
class TableRequest:
    """One [[tables]] table."""

    output: Path | None  # None: stdout
    form: str
    view: Mapping[str, Any]  # what report.tables.View takes
    filters: Filters


@dataclass(frozen=True)
class FigureRequest:
    """One [[figures]] table."""

    output: Path
    kind: str
    metric: str | None
    width: float
    filters: Filters


@dataclass(frozen=True)
class Experiment:
    """A file, read."""

    path: Path
    features: Path
    records: Path | None  # None: beside the features
    data: Path
    sets: tuple[str, ...]  # NAME=PATH of images of live methods
    blocks: tuple[RunBlock, ...]
    tables: tuple[TableRequest, ...]
    figures: tuple[FigureRequest, ...]

    def runs(self) -> list[RunSettings]:
        """All runs of all blocks, each once.

        Raises:
            SettingsError: what a block says cannot be run; it names the block.
            StoreError: no OOD set for a ratio above 0.
        """
        runs: list[RunSettings] = []
        for i, block in enumerate(self.blocks, 1):
            try:
                runs += block.runs(self.features)
            except SettingsError as error:
                where = f"{self.path}: [[runs]] {i}: {error}"
                raise SettingsError(where, remedy=error.remedy) from error
        return list(dict.fromkeys(runs))


def read_experiment(path: Path) -> Experiment:
    """The experiment that a file describes.

    Raises:
        StoreError: it cannot be read.
        SettingsError: it is no TOML, or a key or a value of it is wrong.
    """
    try:
        plain = tomllib.loads(read_input(path, _LARGEST).decode())
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is no TOML: {first_line(error)}") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path} ({first_line(error)}).") from error
    return _experiment(_Table(path, "", plain))


def _experiment(top: "_Table") -> Experiment:
    top.only("features", "records", "data", "encoder", "datasets", "runs", "tables", "figures")
    folder, encoder = top.path.parent, _encoder(top, EncoderChoice())
    sets = top.table("datasets")
    records = top.text("records")
    experiment = Experiment(
        path=top.path,
        features=folder / top.text("features", str(FEATURES)),
        records=folder / records if records else None,
        data=folder / top.text("data", str(DATA)),
        sets=tuple(f"{name}={folder / sets.text(name)}" for name in sets.names()),
        blocks=tuple(_block(table, encoder) for table in top.tables("runs")),
        tables=tuple(_table_request(table) for table in top.tables("tables")),
        figures=tuple(_figure_request(table) for table in top.tables("figures")),
    )
    if not experiment.blocks:
        raise SettingsError(f"{top.path} has nothing to run: add a table [[runs]] with methods.")
    return experiment


def _encoder(table: "_Table", default: EncoderChoice) -> EncoderChoice:
    """The encoder that a table names: the folder of its features, or a model in a table."""
    value = table.take("encoder")
    if value is None:
        return default
    if isinstance(value, str):
        return EncoderChoice(folder=value)
    inner = table.table("encoder")
    keys = ("model", "pretrained", "precision", "folder")
    inner.only(*keys)
    names = {name: inner.text(name) for name in keys}
    weights = table.path.parent / names["pretrained"]
    if names["pretrained"] and weights.is_file():
        names["pretrained"] = str(weights)
    return EncoderChoice(**{name: text for name, text in names.items() if text})


def _block(table: "_Table", encoder: EncoderChoice) -> RunBlock:
    table.only(
        "methods", "id", "ood", "pairs", "presets", "prompts", "settings", "own", "encoder", "tune"
    )
    methods = table.texts("methods")
    if not methods:
        table.fail("methods", "must name one method or more")
    for method in methods:
        check_method(method, f"{table.path}: {table.where}: methods")
    own = table.table("own")
    block = RunBlock(
        methods, _encoder(table, encoder), _pairs(table), table.texts("presets"),
        table.texts("prompts"), table.table("settings").settings(setting_names()),
        {name: own.table(name).settings(_own_names(own, name)) for name in own.names()},
    )  # fmt: skip
    if table.take("tune") is not None:
        table.fail("tune", "is not known to this version")
    return block


def _own_names(table: "_Table", method: str) -> Sequence[str]:
    check_method(method, f"{table.path}: {table.where}: method")
    return tuple(declared(method))


def _pairs(table: "_Table") -> tuple[SetPairs, ...]:
    """The pairs of a block: of `id` and `ood` all combinations, or those that `pairs` lists."""
    id_sets, ood_sets = table.texts("id"), table.texts("ood")
    listed = table.tables("pairs")
    if listed and (id_sets or ood_sets):
        table.fail("pairs", "stands in the place of id and ood: leave these out")
    pairs = []
    for pair in listed:
        pair.only("id", "ood")
        pairs.append(SetPairs(pair.text("id"), pair.texts("ood")))
        if not pairs[-1].id_set:
            pair.fail("id", "must name an ID set")
    if not listed and (id_sets or ood_sets):
        pairs = [SetPairs(id_set, ood_sets) for id_set in id_sets or ("",)]
    return tuple(pairs)


_FILTERS = ("methods", "id", "ood", "ratio", "seed", "encoders", "settings")
_VIEW = ("report", "spread", "caption", "label")


def _table_request(table: "_Table") -> TableRequest:
    table.only("output", "format", *_VIEW, "columns", "aggregate", "names", *_FILTERS)
    texts = {name: table.text(name) for name in _VIEW}
    view: dict[str, Any] = {name: text for name, text in texts.items() if text}
    if "label" in view:
        view["reference"] = view.pop("label")
    names = table.table("names")
    view["metrics"], view["aggregate"] = table.texts("columns"), table.flag("aggregate")
    view["labels"] = {name: names.text(name) for name in names.names()}
    output = table.text("output")
    return TableRequest(
        table.path.parent / output if output else None, table.text("format"), view,
        _filters(table),
    )  # fmt: skip


def _figure_request(table: "_Table") -> FigureRequest:
    table.only("kind", "output", "metric", "width", *_FILTERS)
    if not (output := table.text("output")):
        table.fail("output", "must name the figure's file")
    return FigureRequest(
        table.path.parent / output, table.text("kind"), table.text("metric") or None,
        table.number("width", 3.25), _filters(table),
    )  # fmt: skip


def _filters(table: "_Table") -> Filters:
    """Which runs a table or a figure shows."""
    settings = table.table("settings").settings((*setting_names(), "preset", "prompt"))
    texts = {name: [shown(name, value) for value in values] for name, values in settings.items()}
    return Filters(
        table.texts("methods"), table.texts("id"), table.texts("ood"), table.numbers("ratio"),
        [int(seed) for seed in table.numbers("seed")], table.texts("encoders"), texts,
    )  # fmt: skip


class _Table:
    """A table of the file; a key of it may be written with dashes or underscores."""

    def __init__(self, path: Path, where: str, plain: Any) -> None:
        self.path, self.where = path, where
        if not isinstance(plain, dict):
            raise SettingsError(f"{path}: {where} must be a table.")
        self._plain = {name.replace("-", "_"): value for name, value in plain.items()}
        self._written = {name.replace("-", "_"): name for name in plain}
        if len(self._written) < len(plain):
            self.fail(where or "it", "has a key twice, with dashes and with underscores")

    def names(self) -> list[str]:
        """All keys, as they are written."""
        return list(self._written.values())

    def fail(self, name: str, words: str) -> NoReturn:
        """Raise SettingsError on a key's value."""
        where = f"{self.where}: " if self.where else ""
        raise SettingsError(f"{self.path}: {where}{name} {words}.")

    def take(self, name: str) -> Any:
        """A key's value; None where there is none."""
        return self._plain.get(name.replace("-", "_"))

    def only(self, *keys: str) -> None:
        """Refuse all other keys."""
        for key, name in self._written.items():
            if key not in keys:
                self.fail(short(name), f"is no key{near(key, keys)}: known are {', '.join(keys)}")

    def _one(self, name: str, kind: type[T] | tuple[type[T], ...], words: str, default: T) -> T:
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.fail(name, f"is {short(str(value))}, must be {words}")
        return value

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        return self._one(name, str, "a text", default)

    def flag(self, name: str) -> bool:
        """Whether something is wanted."""
        return self._one(name, bool, "true or false", False)

    def number(self, name: str, default: float) -> float:
        """A number."""
        return float(self._one(name, (int, float), "a number", default))

    def texts(self, name: str) -> tuple[str, ...]:
        """A text or a list of texts."""
        return tuple(self._several(name, str, "a text or a list of texts"))

    def numbers(self, name: str) -> tuple[float, ...]:
        """A number or a list of numbers."""
        return tuple(self._several(name, (int, float), "a number or a list of numbers"))

    def _several(self, name: str, kind: Any, words: str) -> list[Any]:
        value = self.take(name)
        values = value if isinstance(value, list) else [] if value is None else [value]
        for one in values:
            if not isinstance(one, kind) or isinstance(one, bool):
                self.fail(name, f"is {short(str(value))}, must be {words}")
        return values

    def table(self, name: str) -> "_Table":
        """A table within this one; an empty one where there is none."""
        value = self.take(name)
        return _Table(self.path, self._within(name), {} if value is None else value)

    def _within(self, name: str) -> str:
        """How a table in this one is called."""
        return f"{self.where}, {name}" if self.where else f"[{name}]"

    def tables(self, name: str) -> "list[_Table]":
        """A list of tables."""
        values = self.take(name)
        if values is not None and not isinstance(values, list):
            self.fail(name, f"must be a list of tables, [[{name}]]")
        return [
            _Table(self.path, f"{self._within(name) if self.where else f'[[{name}]]'} {i}", value)
            for i, value in enumerate(values or [], 1)
        ]

    def settings(self, allowed: Sequence[str]) -> dict[str, list[Any]]:
        """All keys as settings with their values, a single one or a list."""
        options = _by_any_name(allowed)
        settings: dict[str, list[Any]] = {}
        for key, written in self._written.items():
            if key not in options:
                known = "" if near(key, list(options)) else f": known are {', '.join(options)}"
                self.fail(short(written), f"is no setting{near(key, list(options))}{known}")
            value = self.take(key)
            values = value if isinstance(value, list) else [value]
            settings[options[key]] = [_setting_value(options[key], one) for one in values]
        return settings


def _by_any_name(names: Sequence[str]) -> dict[str, str]:
    """Settings by their names and by those of their options, `threshold` for `fixed`."""
    options = {name: name for name in names}
    for name, metadata in _fields():
        if name in options:
            options.setdefault(option_name(metadata).replace("-", "_"), name)
    return options


def _fields() -> Iterator[tuple[str, Any]]:
    """All settings as they are declared, by name."""
    from zsntta_cli.methods import METHODS

    for method in METHODS:
        yield from declared(method).items()


def _setting_value(name: str, value: Any) -> Any:
    """A value as a run has it: `none` and `adaptive` are None where a setting may be that."""
    optional = any(value_type(declared)[1] for own, declared in _fields() if own == name)
    return None if optional and value in _NONE else value


def records_path(experiment: Experiment) -> Path:
    """Where the results of an experiment are kept."""
    return experiment.records or experiment.features / NAME
