"""The runs by which a cell of the paper is measured, and the feature files that they need."""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path, folder_name
from zsntta_cli.datasets.catalogue import CORRUPTIONS
from zsntta_cli.datasets.names import DATASET, SetName
from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.paper.cells import PaperCell, PaperEncoder, cells
from zsntta_cli.paper.printed.published import AVERAGE, Printed
from zsntta_cli.paper.printed.tables import TABLES, PaperTable
from zsntta_cli.results.frame import shown
from zsntta_cli.results.keeping import NeededFile, needed_files
from zsntta_cli.settings import Ratio
from zsntta_cli.settings.options import value_type
from zsntta_cli.simulation.runs import RunSettings, build_run, declared
from zsntta_cli.simulation.stream import stream_sizes

Streams = tuple[tuple[RunSettings, ...], ...]  # the streams of a cell, each with runs of all seeds
_USUAL_RATIO = 0.5  # of tables that name no ratio
_SEVERITY = 1  # Table 15


@dataclass(frozen=True)
class Wishes:
    """The user's choices of how the tables are measured."""

    root: Path  # of feature files
    encoder: PaperEncoder = PaperEncoder()  # noqa: RUF009 -- it is frozen
    preset: str = "paper"
    seeds: tuple[int, ...] = ()  # empty: the table's seeds
    prompt: str = ""  # a template that replaces those of the sets
    own: tuple[tuple[str, str, Any], ...] = ()  # method, setting, value: they replace the tables'
    methods: tuple[str, ...] = ()  # rows beside the paper's
    ratios: tuple[Ratio, ...] = ()  # further rows at these, for tables that name no ratio

    @property
    def is_as_published(self) -> bool:
        """Whether prompts and settings are those of the tables."""
        return not self.prompt and not self.own

    def changed(self, run: RunSettings) -> RunSettings:
        """Change a run to the prompt and the settings that the user has chosen.

        Raises:
            SettingsError: a value is out of its range.
        """
        values = {name: value for method, name, value in self.own if method == run.method}
        if self.is_as_published or not (values or self.prompt):
            return run
        return build_run(
            run.method, run.encoder, run.id_set, run.ood_set, self.prompt or run.prompt,
            **{**run.flat(), **values},
        )  # fmt: skip


def rival_name(method: str) -> str:
    """The name of the row of a method that the paper's table lacks."""
    return f"{method} (not in the paper)"


def wished_cells(table: PaperTable, wishes: Wishes) -> list[PaperCell]:
    """The cells of a table, with a row for each added method, on the streams of AdaND's row.

    Raises:
        SettingsError: methods are added to a table whose rows are no methods, or ratios to a table
            that names its noise ratios.
    """
    every = _at_ratios(cells(table, wishes.encoder), wishes.ratios)
    if wishes.methods and table.heads != ("Method",):
        raise SettingsError(
            f"table {table.number} compares settings of the paper's methods: no row for "
            f"{', '.join(wishes.methods)} has a place there."
        )
    ours = [cell for cell in every if cell.of.method == "adand"]
    first = [cell for cell in ours if cell.row == ours[0].row]
    return every + [
        replace(
            cell, row=(rival_name(method),), of=replace(cell.of, method=method, setting=""),
            published=(),
        )
        for method in wishes.methods
        for cell in first
    ]  # fmt: skip


def _at_ratios(every: list[PaperCell], ratios: Sequence[Ratio]) -> list[PaperCell]:
    """The cells of a table, with those of the same rows at other noise ratios.

    Raises:
        SettingsError: the table names its noise ratios.
    """
    table = every[0].table
    if ratios and any(cell.of.ratio is not None for cell in every):
        raise SettingsError(
            f"table {table.number} is not measured at other noise ratios: that is for tables that "
            f"name none, as table 5."
        )
    return every + [
        replace(
            cell, row=(f"{cell.row[0]} (noise {shown('ratio', ratio)})", *cell.row[1:]),
            of=replace(cell.of, ratio=ratio),
        )
        for ratio in ratios
        for cell in every
    ]  # fmt: skip


def streams(cell: PaperCell, wishes: Wishes) -> Streams:
    """The streams of a cell, one for each OOD set or corruption that it is the mean of.

    There are none if a cell is not run: the paper quotes scores that need more than features.
    """
    if METHODS[cell.of.method].needs:
        return ()
    folder = folder_name(wishes.encoder.choice(cell.of))
    runs = cell_runs(cell, folder, wishes.preset, wishes.seeds or cell.table.seeds)
    if wishes.is_as_published:
        return runs
    return tuple(tuple(map(wishes.changed, of_set)) for of_set in runs)


def cell_runs(cell: PaperCell, folder: str, preset: str, seeds: Sequence[int]) -> Streams:
    """The runs of a cell, on the features in an encoder's folder, stream by stream.

    A clean stream is the same for all OOD sets, so there is only one.
    """
    of = cell.of
    ratio = _USUAL_RATIO if of.ratio is None else of.ratio
    values = {"ratio": ratio, **_settings(of)}
    runs = [
        tuple(
            build_run(
                of.method, folder, id_set, ood_set, datasets.default_prompt(id_set), preset,
                **values, seed=seed,
            )
            for seed in seeds
        )
        for id_set in _id_sets(of.id_set)
        for ood_set in _ood_sets(of)
    ]  # fmt: skip
    return tuple(dict.fromkeys(runs))


def all_runs(wishes: Wishes, tables: Iterable[PaperTable] = TABLES) -> list[RunSettings]:
    """All runs of some tables, each once."""
    runs = (
        run
        for table in tables
        for cell in wished_cells(table, wishes)
        for seeds in streams(cell, wishes)
        for run in seeds
    )
    return list(dict.fromkeys(runs))


def _id_sets(id_set: str) -> Sequence[str]:
    """An ID set, or the 15 corrupted sets over which its cells are means."""
    if datasets.known(id_set).role != "shift":
        return [id_set]
    return [f"{id_set}:{corruption}:{_SEVERITY}" for corruption in CORRUPTIONS]


def _ood_sets(cell: Printed) -> Sequence[str]:
    partners = datasets.partners(SetName.parse(cell.id_set).base)
    if cell.ood_set == AVERAGE:
        return partners
    return [cell.ood_set]


def _settings(cell: Printed) -> dict[str, Any]:
    """The settings of a cell, converted to their types."""
    settings = cell.settings
    if settings.get("source") == "quoted":  # MCM's own paper: cosines at temperature 1
        return {"temperature": 1.0}
    fields = declared(cell.method)
    return {
        name: value_type(fields[name])[0](text) for name, text in settings.items() if name in fields
    }


# The feature files of runs.


def present_files(root: Path, runs: Iterable[RunSettings]) -> set[NeededFile]:
    """The feature files of some runs that exist."""
    return {file for file in needed_files(runs) if feature_path(root, *file).exists()}


def runnable(root: Path, runs: Sequence[RunSettings]) -> list[RunSettings]:
    """The runs whose feature files all exist."""
    present = present_files(root, runs)
    return [run for run in runs if present.issuperset(needed_files([run]))]


def miscounted_files(root: Path, runs: Iterable[RunSettings]) -> dict[NeededFile, str]:
    """The feature files whose number of images differs from the published set's, with counts."""
    counts = {
        (folder, name): datasets.miscounted(name, _image_count(root, folder, name))
        for folder, name in sorted(present_files(root, runs))
        if SetName.parse(name).kind == DATASET
    }
    return {file: count for file, count in counts.items() if count}


def count_items(root: Path, runs: Iterable[RunSettings]) -> int:
    """The number of items in the streams of some runs, with injected noise."""

    @functools.cache
    def images(folder: str, name: str | None) -> int:
        return _image_count(root, folder, name) if name else 0

    sizes = (
        stream_sizes(r.stream, images(r.encoder, r.id_set), images(r.encoder, r.ood_set))
        for r in runs
    )
    return sum(map(sum, sizes))


def _image_count(root: Path, folder: str, name: str) -> int:
    """The number of images of a set: in its feature file, or else in the published set."""
    try:
        return len(store.read(feature_path(root, folder, name), rows=False))
    except (StoreError, OSError):  # the run itself reports a broken file
        return datasets.known(name).images
