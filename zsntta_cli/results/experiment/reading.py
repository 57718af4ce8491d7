"""Read an experiment from a TOML file.

docs/experiments.md has all keys. The whole file is checked before anything is run; an error names
the file, the table and the key. Paths in it are relative to its folder.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError, StoreError, first_line
from zsntta_cli.files import read_input
from zsntta_cli.methods import METHODS, check_method, find_method
from zsntta_cli.results.every import EVERY
from zsntta_cli.results.experiment import (
    Experiment,
    FigureRequest,
    RunBlock,
    SetPairs,
    TableRequest,
)
from zsntta_cli.results.experiment.toml import TomlTable
from zsntta_cli.results.frame import shown
from zsntta_cli.results.grid import Axes
from zsntta_cli.results.selection import Filters
from zsntta_cli.settings import DATA, FEATURES, EncoderChoice

_LARGEST = 2**22  # bytes of a file


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
    return _experiment(TomlTable(path, "", plain))


def _experiment(top: TomlTable) -> Experiment:
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


def _encoder(table: TomlTable, default: EncoderChoice) -> EncoderChoice:
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


def _block(table: TomlTable, encoder: EncoderChoice) -> RunBlock:
    table.only("methods", "id", "ood", "pairs", "presets", "prompts", "settings", "own", "encoder")
    methods = table.texts("methods")
    if not methods:
        table.fail("methods", "must name one method or more")
    for method in (name for name in methods if name != EVERY):
        check_method(method, f"{table.path}: {table.where}: methods")
    return RunBlock(
        methods, _encoder(table, encoder), _pairs(table), table.texts("presets"),
        table.texts("prompts"), table.table("settings").settings(_expanded(methods)),
        _own_settings(table),
    )  # fmt: skip


def _own_settings(table: TomlTable) -> dict[str, Axes]:
    """Settings by method, each for that method alone."""
    own_tables = table.table("own")
    return {
        name: own_tables.table(name).settings([_checked(own_tables, name)])
        for name in own_tables.names()
    }


def _checked(table: TomlTable, method: str) -> str:
    check_method(method, f"{table.path}: {table.where}: method")
    return method


def _expanded(methods: Sequence[str]) -> Sequence[str]:
    """The methods whose settings a table may have: those that it names, or all."""
    return tuple(METHODS) if not methods or EVERY in methods else methods


def _pairs(table: TomlTable) -> tuple[SetPairs, ...]:
    """The pairs of a block: all combinations of `id` and `ood`, or those that `pairs` lists."""
    id_sets, ood_sets = table.texts("id"), table.texts("ood")
    listed = _listed_pairs(table, "pairs")
    if listed and (id_sets or ood_sets):
        table.fail("pairs", "replaces id and ood: leave these out")
    if listed or not (id_sets or ood_sets):
        return listed
    return tuple(SetPairs(id_set, ood_sets) for id_set in id_sets or ("",))


def _listed_pairs(table: TomlTable, key: str) -> tuple[SetPairs, ...]:
    """ID sets with their OOD sets, from one table each."""
    pairs = []
    for pair in table.tables(key):
        pair.only("id", "ood")
        pairs.append(SetPairs(pair.text("id"), pair.texts("ood")))
        if not pairs[-1].id_set:
            pair.fail("id", "must name an ID set")
    return tuple(pairs)


_FILTERS = ("methods", "id", "ood", "ratio", "seed", "encoders", "settings")
_VIEW = ("report", "spread", "caption", "width", "label")


def _table_request(table: TomlTable) -> TableRequest:
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


def _figure_request(table: TomlTable) -> FigureRequest:
    table.only("kind", "output", "metric", "width", *_FILTERS)
    if not (output := table.text("output")):
        table.fail("output", "must name the figure's file")
    return FigureRequest(
        table.path.parent / output, table.text("kind"), table.text("metric") or None,
        table.number("width", 3.3), _filters(table),
    )  # fmt: skip


def _filters(table: TomlTable) -> Filters:
    """Which runs a table or a figure shows."""
    methods = table.texts("methods")
    here = [method for method in methods if find_method(method)]
    settings = table.table("settings").settings(_expanded(here), ("preset", "prompt"))
    texts = {name: [shown(name, value) for value in values] for name, values in settings.items()}
    return Filters(
        methods, table.texts("id"), table.texts("ood"), table.ratios("ratio"),
        [int(seed) for seed in table.numbers("seed")], table.texts("encoders"), texts,
    )  # fmt: skip
