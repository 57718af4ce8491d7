"""The runs by which a table is measured, and the feature files that they need."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.cache.folder import folder_name
from zsntta_cli.datasets.catalogue import CORRUPTIONS
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.paper.tables import AVERAGE, PARTNERS, USUAL_ENCODER, PaperTable, Place, Printed
from zsntta_cli.settings import FP32, NATURAL, EncoderChoice, StreamSettings, is_tiny, known_folders
from zsntta_cli.simulation.runs import RunSettings, build_run

BUILT_IN = "shapes"  # replaces every ID set for the embedded encoder
Streams = tuple[tuple[RunSettings, ...], ...]  # those that a number is the mean of, with all seeds
Cells = Mapping[Place, Mapping[str, Printed]]  # places, and what is printed there by metric
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
    own: tuple[tuple[str, str, Any], ...] = ()  # method, setting, value: they replace the tables'
    methods: tuple[str, ...] = ()  # rows beside the paper's
    ood_items: Path | None = None  # folder of lists of the OOD images; drawn are those of no list

    @property
    def is_built_in(self) -> bool:
        """Whether it is the embedded encoder, for which built-in sets stand in."""
        return self.named is not None and is_tiny(self.named.slug)

    def folder(self, encoder: str = USUAL_ENCODER) -> str:
        """The folder of the features on which one of the paper's encoders is measured."""
        return folder_name(self.named or EncoderChoice(encoder, precision=self.precision))

    def is_of_paper(self, encoder: str) -> bool:
        """Whether printed numbers of one of the paper's encoders are beside ours.

        The encoder of a user's folder of features is not known: it may be the usual one.
        """
        if self.named is None or self.is_built_in:
            return self.named is None
        theirs = EncoderChoice(encoder)
        if (folder := self.named.folder) is None:
            return (self.named.model, self.named.pretrained) == (theirs.model, theirs.pretrained)
        listed = known_folders().get(folder)
        return encoder == (listed.model if listed else USUAL_ENCODER)

    def run(
        self, method: str, encoder: str, id_set: str, ood_set: str | None, **values: Any
    ) -> RunSettings:
        """A run on the features in an encoder's folder.

        Raises:
            SettingsError: a value is out of its range.
        """
        settings = values | {name: value for of, name, value in self.own if of == method}
        prompt = self.prompt or datasets.default_prompt(id_set)
        ratio = settings.get("ratio", StreamSettings.ratio)
        if self.ood_items and ood_set and ratio and ratio != NATURAL:
            from zsntta_cli.simulation.items import list_path  # it imports NumPy

            if list_path(self.ood_items, id_set, ood_set, ratio).exists():
                settings["ood_items"] = str(self.ood_items)
        return build_run(method, encoder, id_set, ood_set, prompt, self.preset, **settings)

    def wished(self, table: PaperTable) -> PaperTable:
        """A table with a row for each added method.

        Raises:
            SettingsError: the rows of the table are no methods.
        """
        if not self.methods:
            return table
        if table.head != "Method":
            raise SettingsError(
                f"table {table.number} compares settings of the paper's methods: no row for "
                f"{', '.join(self.methods)} has a place there."
            )
        added = {f"{method} (not in the paper)": {"method": method} for method in self.methods}
        return replace(table, rows={**table.rows, **added})


def cells(table: PaperTable, wishes: Wishes) -> Cells:
    """The places of a table in the paper's order, with what is printed at each.

    A named encoder takes the place of those of the paper. For the embedded one built-in sets stand
    in for the paper's. Places that are one then have the numbers of the first that has some.
    """
    found: dict[Place, Mapping[str, Printed]] = {}
    axes = table.encoders, table.id_sets, table.rows, table.ratios, table.ood_sets
    for encoder, id_set, row, ratio, part in itertools.product(*axes):
        partners = datasets.partners(id_set)
        for ood_set in partners if part == PARTNERS else [part]:
            place = Place(encoder, id_set, row, float(ratio), ood_set)
            numbers = table.printed.get(place, {}) if wishes.is_of_paper(encoder) else {}
            if wishes.named:
                place = place._replace(encoder=wishes.named.slug)
            if wishes.is_built_in:
                number = partners.index(ood_set) if ood_set in partners else 0
                drawn = AVERAGE if ood_set == AVERAGE else datasets.partners(BUILT_IN)[number]
                place = place._replace(id_set=BUILT_IN, ood_set=drawn)
            found[place] = found.get(place) or numbers
    return found


def is_left_out(method: str, wishes: Wishes) -> bool:
    """Whether a method needs more than features, and no setting says where that is."""
    return bool(METHODS[method].needs) and method not in {of for of, _, _ in wishes.own}


def streams(table: PaperTable, place: Place, wishes: Wishes) -> Streams:
    """The streams of a place, one for each OOD set or corruption that it is the mean of.

    A clean stream is the same for all OOD sets, so there is only one. There is none of what is not
    run: the paper quotes scores that need more than features, as long as --set does not name it.
    """
    asked = {**table.rows[place.row], "ratio": place.ratio}
    method = asked.pop("method")
    if is_left_out(method, wishes):
        return ()
    folder, id_sets, ood_sets = wishes.folder(place.encoder), [place.id_set], [place.ood_set]
    if datasets.known(place.id_set).role == "shift":  # its numbers are means over corrupted sets
        id_sets = [f"{place.id_set}:{corruption}:{_SEVERITY}" for corruption in CORRUPTIONS]
    if place.ood_set == AVERAGE:
        ood_sets = [*datasets.partners(place.id_set)]
    of_each = [
        tuple(
            wishes.run(method, folder, id_set, ood_set, **asked, seed=seed)
            for seed in wishes.seeds or range(table.seeds)
        )
        for id_set in id_sets
        for ood_set in ood_sets
    ]
    return tuple(dict.fromkeys(of_each))


def all_runs(wishes: Wishes, tables: Iterable[PaperTable]) -> list[RunSettings]:
    """All runs of some tables, each once."""
    runs = (
        run
        for table in map(wishes.wished, tables)
        for place in cells(table, wishes)
        for of_stream in streams(table, place, wishes)
        for run in of_stream
    )
    return list(dict.fromkeys(runs))
