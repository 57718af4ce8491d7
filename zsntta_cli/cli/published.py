"""`--features ADDRESS` and `extract --from`: what is published is fetched before it is used."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli.line.command import say
from zsntta_cli.errors import StoreError, counted
from zsntta_cli.settings import KNOWN_FOLDERS, EncoderChoice

if TYPE_CHECKING:
    from zsntta_cli.extraction.plan import ExtractPlan
    from zsntta_cli.results.exchange import RecordedRun
    from zsntta_cli.results.grid import Grid
    from zsntta_cli.sharing.index import Index
    from zsntta_cli.sharing.stores import FeaturePlace

PublishedOption = Annotated[
    str | None,
    typer.Option(
        "--features",
        metavar="ADDRESS",
        help="Address from which missing features are fetched first: hf://USER/REPO[@REVISION], "
        "file:///FOLDER …",
    ),
]
PublishedFile = tuple[str, str]  # the folder of an encoder, the name of a set


@dataclass(frozen=True)
class PublishedFeatures:
    """Features at an address, to be fetched into a features folder as they are wanted."""

    address: str
    root: Path
    is_dry: bool = False  # say what would be fetched, and fetch nothing

    @cached_property
    def _store(self) -> "FeaturePlace":
        from zsntta_cli.sharing.stores import open_store

        return open_store(self.address)

    @cached_property
    def index(self) -> "Index":
        """What lies there."""
        from zsntta_cli.sharing.index import read_index

        return read_index(self._store)

    def encoder(self, choice: EncoderChoice, is_named: bool) -> EncoderChoice:
        """The encoder that is meant: the one named, else the only one there.

        Raises:
            StoreError: none is named, and the default is not among several.
        """
        there = self.index.encoders
        if is_named or choice.slug in there or not there:
            return choice
        if len(there) > 1:
            raise StoreError(
                f"{self.address} has features by {', '.join(there)}: name one with --encoder."
            )
        return KNOWN_FOLDERS.get(there[0]) or EncoderChoice(folder=there[0])

    def fetch(self, files: Iterable[PublishedFile]) -> list[PublishedFile]:
        """Fetch what lacks here of the files that are there; gives those that are there."""
        from zsntta_cli.cache.folder import feature_path
        from zsntta_cli.progress import ConsoleReporter
        from zsntta_cli.sharing.index import path_of
        from zsntta_cli.sharing.pull import pull

        there = [file for file in dict.fromkeys(files) if path_of(*file) in self.index.files]
        lacking = [file for file in there if not feature_path(self.root, *file).exists()]
        reporter = ConsoleReporter()
        if self.is_dry:
            size = sum(self.index.files[path_of(*file)].size for file in lacking) / 2**20
            what = counted(len(lacking), "file")
            say(f"to fetch from {self.address}: {what}, {size:,.1f} MiB", err=True)
            return there
        for pulled in pull(self._store, self.index, self.root, lacking, reporter):
            reporter.note(f"fetched {pulled.line}")
        return there

    def fetch_for_grid(self, grid: "Grid") -> None:
        """Fetch what the runs of a grid may read."""
        from zsntta_cli.cache.folder import folder_name

        folder = folder_name(grid.encoder)
        names = self.index.names(folder)
        wanted = {*_sets_of(grid, names), *_beside(grid, names)}
        self.fetch((folder, name) for name in names if name in wanted)

    def fetch_for_records(self, recorded: "Sequence[RecordedRun]") -> None:
        """Fetch what recorded runs have read."""
        from zsntta_cli.results.planning import needed_files

        read = [(run.settings.encoder, name) for run in recorded for name in run.origins]
        self.fetch([*(file for run in recorded for file in needed_files(run.settings)), *read])

    def without_published(self, plan: "ExtractPlan", choice: EncoderChoice) -> "ExtractPlan":
        """Fetch what a plan of an extraction would make; the plan of what is left to make.

        A set whose class names are to be embedded under a prompt that lacks there stays in it.
        """
        import dataclasses

        from zsntta_cli.cache.folder import folder_name
        from zsntta_cli.extraction.plan import planned_names

        folder = folder_name(choice)
        there = self.fetch((folder, name) for name in planned_names(plan))
        published = {name: self.index.files[f"{folder}/{name}.h5"].header for _, name in there}
        return dataclasses.replace(plan, published=published)


def _sets_of(grid: "Grid", there: Collection[str]) -> set[str]:
    """The ID and OOD sets that a grid names or means, as far as their names tell."""
    from zsntta_cli import datasets
    from zsntta_cli.cache.split import ood_of
    from zsntta_cli.results.grid import ALL, default_id_set

    id_sets = grid.id_sets or [default_id_set(grid.encoder)]
    if ALL in grid.ood_sets:
        return {*there}
    partners = [name for id_set in id_sets for name in datasets.partners(id_set)]
    own = [name for id_set in id_sets if (name := ood_of(id_set))]
    return {*id_sets, *(grid.ood_sets or [*partners, *own])}


def _beside(grid: "Grid", there: Collection[str]) -> list[str]:
    """The noise pools that a grid's streams have, and the word lists that its methods read."""
    from zsntta_cli.datasets.names import WORDS, SetName, noise_name

    types = [*grid.axes.get("noise", ()), *_own_values(grid, "noise")]
    words = [*grid.axes.get("words", ()), *_own_values(grid, "words")]
    reads_words = any(words) or any(_may_need(name) for name in grid.methods)
    lists = [name for name in there if SetName.parse(name).kind == WORDS]
    return [*map(noise_name, types or ("gaussian",)), *(lists if reads_words else ())]


def _may_need(method: str) -> bool:
    """Whether a method, or one of `all`, reads words."""
    from zsntta_cli.methods import METHODS
    from zsntta_cli.results.every import EVERY

    return method == EVERY or bool(METHODS[method].needs)


def _own_values(grid: "Grid", setting: str) -> list[str]:
    """The values of a setting that single methods are given."""
    return [value for axes in grid.own.values() for value in axes.get(setting, ())]
