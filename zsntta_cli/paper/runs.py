"""The numbers of a table, the runs that measure each of them, and what runs need encoded."""

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path, folder_name
from zsntta_cli.datasets.catalogue import CORRUPTIONS
from zsntta_cli.datasets.names import NOISE, SetName
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.paper.tables import AVERAGE, PARTNERS, USUAL_ENCODER, PaperTable, Place, Printed
from zsntta_cli.settings import (
    FP32,
    NATURAL,
    NO_NOISE,
    OPENAI,
    PAPER_ENCODERS,
    EncoderChoice,
    StreamSettings,
    is_tiny,
    known_folders,
)
from zsntta_cli.simulation.runs import RunSettings, build_run

BUILT_IN = "shapes"  # replaces every ID set for the embedded encoder
_SEVERITY = 1  # Table 15


@dataclass(frozen=True)
class Wishes:
    """What the tables are measured with."""

    root: Path  # of feature files
    named: EncoderChoice | None = None  # one encoder for all; None: each place's own
    precision: str = FP32  # where none is named
    preset: str = "paper"
    seeds: tuple[int, ...] = ()  # none: as many as the table has
    prompt: str = ""  # a template that replaces those of the sets
    # Settings by method: they replace the tables'.
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    methods: tuple[str, ...] = ()  # rows beside the paper's
    ood_items: Path | None = None  # folder of lists of the OOD images; drawn are those of no list

    @property
    def is_built_in(self) -> bool:
        """Whether it is the embedded encoder, for which built-in sets replace the paper's."""
        return self.named is not None and is_tiny(self.named.slug)

    def folder(self, encoder: str = USUAL_ENCODER) -> str:
        """The folder of the features that one of the paper's encoders is measured with."""
        return folder_name(self.named or EncoderChoice(encoder, precision=self.precision))

    def is_of_paper(self, encoder: str) -> bool:
        """Whether printed numbers of one of the paper's encoders are shown next to ours.

        The encoder of a user's folder of features is not known: it may be the usual one.
        """
        if self.named is None:
            return True
        named = known_folders().get(self.named.folder or "", self.named)
        if named.folder:
            return encoder == USUAL_ENCODER
        return (named.model, named.pretrained) == (encoder, OPENAI)

    def is_run(self, method: str) -> bool:
        """Whether a method is run: not one that needs more than features, unless --set names it."""
        return not METHODS[method].needs or method in self.own

    def run(
        self, method: str, encoder: str, id_set: str, ood_set: str | None, **values: Any
    ) -> RunSettings:
        """A run on the features in an encoder's folder.

        Raises:
            SettingsError: a value is out of its range.
        """
        settings = {**values, **self.own.get(method, {})}
        prompt = self.prompt or datasets.default_prompt(id_set)
        ratio = settings.get("ratio", StreamSettings.ratio)
        if self.ood_items and ood_set and ratio and ratio != NATURAL:
            from zsntta_cli.simulation.sources import list_path  # it imports NumPy

            if list_path(self.ood_items, id_set, ood_set, ratio).exists():
                settings["ood_items"] = str(self.ood_items)
        return build_run(method, encoder, id_set, ood_set, prompt, self.preset, **settings)


@dataclass(frozen=True, eq=False)
class Cell:
    """A place in a table, what is printed there, and the runs that measure it."""

    table: PaperTable
    wishes: Wishes
    place: Place
    printed: Mapping[str, Printed]  # by metric

    @functools.cached_property
    def streams(self) -> Sequence[Sequence[RunSettings]]:
        """The streams that it is the mean of: one for each OOD set or corruption, with all seeds.

        A clean stream is the same for all OOD sets, so there is only one. There is none of what is
        not run: the paper quotes scores that need more than features.
        """
        place, wishes = self.place, self.wishes
        asked = {**self.table.rows[place.row], "ratio": place.ratio}
        method = asked.pop("method")
        if not wishes.is_run(method):
            return ()
        folder, id_sets, ood_sets = wishes.folder(place.encoder), [place.id_set], [place.ood_set]
        if datasets.known(place.id_set).role == "shift":  # its numbers are means over corruptions
            id_sets = [f"{place.id_set}:{corruption}:{_SEVERITY}" for corruption in CORRUPTIONS]
        if place.ood_set == AVERAGE:
            ood_sets = [*datasets.partners(place.id_set)]
        seeds = wishes.seeds or range(self.table.seeds)
        return list(dict.fromkeys(
            tuple(wishes.run(method, folder, *sets, **asked, seed=seed) for seed in seeds)
            for sets in itertools.product(id_sets, ood_sets)
        ))  # fmt: skip

    @property
    def base(self) -> "Cell":
        """The cell of ZS-CLIP, from which leads are measured."""
        rows = self.table.rows
        row = next(name for name, asked in rows.items() if asked["method"] == "zs-clip")
        return replace(self, place=self.place._replace(row=row))


def cells(table: PaperTable, wishes: Wishes) -> list[Cell]:
    """The places of a table in the paper's order, with another row for each added method.

    A named encoder replaces the paper's. For the embedded one, built-in sets replace the paper's.
    Places that become equal then have the numbers of the first one that has any.

    Raises:
        SettingsError: methods are added to a table whose rows are not methods.
    """
    if wishes.methods and table.head != "Method":
        raise SettingsError(
            f"table {table.number} compares settings of the paper's methods, so it has no row for "
            f"{', '.join(wishes.methods)}."
        )
    added = {f"{method} (not in the paper)": {"method": method} for method in wishes.methods}
    table = replace(table, rows={**table.rows, **added}) if added else table
    by_place: dict[Place, Cell] = {}
    axes = table.encoders, table.id_sets, table.rows, table.ratios, table.ood_sets
    for encoder, id_set, row, ratio, part in itertools.product(*axes):
        partners = datasets.partners(id_set)
        for ood_set in partners if part == PARTNERS else [part]:
            place = Place(encoder, id_set, row, float(ratio), ood_set)
            printed = table.printed.get(place, {}) if wishes.is_of_paper(encoder) else {}
            if wishes.named:
                place = place._replace(encoder=wishes.named.slug)
            if wishes.is_built_in:
                number = partners.index(ood_set) if ood_set in partners else 0
                drawn = AVERAGE if ood_set == AVERAGE else datasets.partners(BUILT_IN)[number]
                place = place._replace(id_set=BUILT_IN, ood_set=drawn)
            if place not in by_place or not by_place[place].printed:
                by_place[place] = Cell(table, wishes, place, printed)
    return list(by_place.values())


def runs_of(every: Iterable[Cell]) -> list[RunSettings]:
    """All runs of some cells, each once."""
    return list(dict.fromkeys(run for cell in every for runs in cell.streams for run in runs))


# What is to be encoded: sets and noise images of each encoder.


class PaperExtraction(NamedTuple):
    """The sets and noise images that one encoder must encode, and the missing sets."""

    choice: EncoderChoice
    sets: tuple[str, ...]
    pools: tuple[tuple[str, int], ...]  # types of noise, with the number of images
    absent: Sequence[str]


def paper_extractions(
    wishes: Wishes, runs: Sequence[RunSettings], data_root: Path, limit: int | None = None
) -> list[PaperExtraction]:
    """The extractions that some runs need, with sets in the order of the runs.

    There are as many noise images as the longest stream injects, so none is shown twice.
    """
    from zsntta_cli.results.grid import files_of

    of_paper = [replace(encoder, precision=wishes.precision) for encoder in PAPER_ENCODERS]
    extractions = []
    for choice in [wishes.named] if wishes.named else of_paper:
        folder, present, absent = folder_name(choice), list[str](), list[str]()
        of_encoder = [run for run in runs if run.encoder == folder]
        for name in dict.fromkeys(name for run in of_encoder for name in files_of(run)):
            if SetName.parse(name).kind != NOISE:
                entry = datasets.known(name)
                is_cached = feature_path(wishes.root, folder, name).exists()
                is_there = is_cached or entry.downloads or entry.is_there(data_root)
                (present if is_there else absent).append(name)
        pools: dict[str, int] = {}
        for run in of_encoder:
            sets = run.id_set, run.ood_set
            if run.stream.noise != NO_NOISE and not {*sets} & {*absent}:
                sizes = [datasets.known(name).images if name else 0 for name in sets]
                injected = run.stream.sizes(*[min(n, limit or n) for n in sizes]).injected
                pools[run.stream.noise] = max(pools.get(run.stream.noise, 0), injected)
        if of_encoder:
            noise = tuple(pools.items())
            extractions.append(PaperExtraction(choice, tuple(present), noise, absent))
    return extractions
