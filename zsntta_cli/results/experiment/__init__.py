"""An experiment: which runs are made, and which tables and figures show them.

reading.py reads it from a TOML file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.errors import SettingsError
from zsntta_cli.results import NAME
from zsntta_cli.results.grid import Axes, Grid
from zsntta_cli.results.selection import Filters
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation.runs import RunSettings


class SetPairs(NamedTuple):
    """An ID set and its OOD sets; if none is named, its cached partners, or a clean stream."""

    id_set: str
    ood_sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunBlock:
    """One [[runs]] table: all combinations of the values that it names."""

    methods: tuple[str, ...]
    encoder: EncoderChoice
    pairs: tuple[SetPairs, ...] = ()  # none: the encoder's usual ID set
    presets: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    axes: Axes = field(default_factory=dict)
    own: Mapping[str, Axes] = field(default_factory=dict)

    def grids(self) -> list[Grid]:
        """The runs of the table as grids, one for each ID set."""
        return [
            Grid(
                self.methods, self.encoder, [pair.id_set] * bool(pair.id_set), pair.ood_sets,
                self.prompts, self.presets, self.axes, self.own,
            )
            for pair in self.pairs or (SetPairs(""),)
        ]  # fmt: skip

    def runs(self, root: Path) -> list[RunSettings]:
        """All runs of the table, each once.

        Raises:
            SettingsError: a value out of its range, a setting that no method has.
            StoreError: no OOD set for a ratio above 0.
        """
        return list(dict.fromkeys(run for grid in self.grids() for run in grid.runs(root)))

    def notes(self, root: Path) -> list[str]:
        """What is to be said of its methods, as lines, each once."""
        return list(dict.fromkeys(note for grid in self.grids() for note in grid.notes(root)))


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
    """The content of an experiment file."""

    path: Path
    features: Path
    records: Path | None  # None: beside the features
    data: Path
    sets: tuple[str, ...]  # NAME=PATH of images of live methods
    blocks: tuple[RunBlock, ...]
    tables: tuple[TableRequest, ...]
    figures: tuple[FigureRequest, ...]

    @property
    def records_path(self) -> Path:
        """The store in which its results are kept."""
        return self.records or self.features / NAME

    def runs(self) -> list[RunSettings]:
        """All runs of all blocks, each once.

        Raises:
            SettingsError: a block cannot be run; the message names it.
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
