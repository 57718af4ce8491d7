"""The cells of a table in its layout: the place, the settings and the printed numbers of each.

With the embedded encoder, the built-in sets replace the paper's sets. Equal cells are merged then,
and have no published numbers. This module does not import NumPy.
"""

from dataclasses import dataclass, replace

from zsntta_cli import datasets
from zsntta_cli.paper.printed.published import AVERAGE, USUAL_ENCODER, PaperNumber, Printed, printed
from zsntta_cli.paper.printed.tables import (
    LEAD_COLUMN,
    PaperTable,
    column_name,
    group_name,
    row_name,
)
from zsntta_cli.settings import FP32, EncoderChoice, is_tiny, known_folders

BUILT_IN = "shapes"  # replaces every ID set


@dataclass(frozen=True)
class PaperCell:
    """One cell of a table: its place, what is measured for it, and what is published."""

    table: PaperTable
    group: str
    row: tuple[str, ...]
    column: str
    metrics: tuple[str, ...]
    of: Printed  # the printed cell in whose settings it is measured
    published: tuple[PaperNumber, ...]  # one for each metric; empty if nothing is published
    published_encoder: str  # the encoder of the published numbers

    @property
    def is_lead(self) -> bool:
        """Whether the cell is the difference between an average and ZS-CLIP's."""
        return self.column == LEAD_COLUMN


@dataclass(frozen=True)
class PaperEncoder:
    """The encoder of measurements: a named one, or each cell's own if none is named."""

    named: EncoderChoice | None = None
    precision: str = FP32  # if none is named

    @property
    def usual(self) -> EncoderChoice:
        """The encoder of figures, which name none."""
        return self.named or EncoderChoice(precision=self.precision)

    @property
    def is_built_in(self) -> bool:
        """Whether it is the embedded encoder, which only has built-in sets."""
        return self.named is not None and is_tiny(self.named.slug)

    def choice(self, cell: Printed) -> EncoderChoice:
        """The encoder with which a cell is measured."""
        return self.named or EncoderChoice(cell.encoder, precision=self.precision)

    def is_of_paper(self, cell: Printed) -> bool:
        """Whether a cell's published numbers are of this encoder, or may be.

        The encoder of a user's folder of features is not known: it may be the usual one.
        """
        if self.named is None or self.is_built_in:
            return self.named is None
        theirs = EncoderChoice(cell.encoder)
        if (folder := self.named.folder) is None:
            return (self.named.model, self.named.pretrained) == (theirs.model, theirs.pretrained)
        listed = known_folders().get(folder)
        return cell.encoder == (listed.model if listed else USUAL_ENCODER)


def cells(table: PaperTable, encoder: PaperEncoder) -> list[PaperCell]:
    """The cells of a table, in the paper's order."""
    by_place: dict[tuple[str, tuple[str, ...], str], PaperCell] = {}
    for entry in printed(table.number):
        for cell in _cells_of(table, entry, encoder):
            place = (cell.group, cell.row, cell.column)
            # If a cell is printed for several encoders, the named one has published numbers.
            if place not in by_place or not by_place[place].published:
                by_place[place] = cell
    return list(by_place.values())


def _cells_of(table: PaperTable, entry: Printed, encoder: PaperEncoder) -> list[PaperCell]:
    """The cell of a printed entry, and a second one if a difference is printed beside it."""
    numbers = entry.numbers if encoder.is_of_paper(entry) else ()
    of = replace(entry, encoder=encoder.named.slug) if encoder.named else entry
    of = _stand_in(of) if encoder.is_built_in else of
    whole = len(table.metrics)
    cell = PaperCell(
        table, group_name(table, of), row_name(table, of), column_name(table, of), table.metrics,
        of, numbers[:whole], entry.encoder,
    )  # fmt: skip
    if len(entry.texts) == whole:
        return [cell]
    lead = replace(cell, column=LEAD_COLUMN, metrics=table.leads, published=numbers[whole:])
    return [cell, lead]


def _stand_in(cell: Printed) -> Printed:
    """The same cell with built-in sets: OOD sets are replaced in the order of partners."""
    if cell.ood_set in ("", AVERAGE):
        return replace(cell, id_set=BUILT_IN)
    theirs, ours = datasets.partners(cell.id_set), datasets.partners(BUILT_IN)
    place = theirs.index(cell.ood_set) if cell.ood_set in theirs else 0
    return replace(cell, id_set=BUILT_IN, ood_set=ours[place])
