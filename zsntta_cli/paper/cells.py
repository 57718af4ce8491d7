"""The cells of a table as it is laid out: where each stands, of what it is, what is printed there.

Light: no NumPy. With an encoder of the built-in sets, these stand in for the paper's: equal cells
are one then, and nothing is published of them.
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
from zsntta_cli.settings import FP32, KNOWN_FOLDERS, EncoderChoice, is_tiny

BUILT_IN = "shapes"  # stands in for every ID set


@dataclass(frozen=True)
class PaperCell:
    """One cell of a table: a place, what is to be measured for it, what is published."""

    table: PaperTable
    group: str
    row: tuple[str, ...]
    column: str
    metrics: tuple[str, ...]
    of: Printed  # in whose settings it is measured
    published: tuple[PaperNumber, ...]  # for each metric; none where nothing is
    published_encoder: str  # which these are of
    is_added: bool = False  # of a method that the paper's table has not

    @property
    def is_lead(self) -> bool:
        """Whether it is the difference of an average to ZS-CLIP's."""
        return self.column == LEAD_COLUMN


@dataclass(frozen=True)
class PaperEncoder:
    """What is measured with: a named encoder, or each cell's own where none is named."""

    named: EncoderChoice | None = None
    precision: str = FP32  # where none is named

    @property
    def usual(self) -> EncoderChoice:
        """The encoder of what names none: figures, timings."""
        return self.named or EncoderChoice(precision=self.precision)

    @property
    def is_built_in(self) -> bool:
        """Whether it is the embedded one, of which there are built-in sets alone."""
        return self.named is not None and is_tiny(self.named.slug)

    def choice(self, cell: Printed) -> EncoderChoice:
        """The encoder of a cell."""
        return self.named or EncoderChoice(cell.encoder, precision=self.precision)

    def is_of_paper(self, cell: Printed) -> bool:
        """Whether a cell's published numbers are of this encoder, or of one that may be it.

        What made the features of a folder of one's own is not known: it may be the usual one.
        """
        if self.named is None or self.is_built_in:
            return self.named is None
        theirs = EncoderChoice(cell.encoder)
        if (folder := self.named.folder) is None:
            named = self.named.as_published
            return (named.model, named.pretrained) == (theirs.model, theirs.pretrained)
        listed = KNOWN_FOLDERS.get(folder)
        return cell.encoder == (listed.model if listed else USUAL_ENCODER)


def cells(table: PaperTable, encoder: PaperEncoder) -> list[PaperCell]:
    """The cells of a table, in the paper's order."""
    by_place: dict[tuple[str, tuple[str, ...], str], PaperCell] = {}
    for entry in printed(table.number):
        for cell in _cells_of(table, entry, encoder):
            place = (cell.group, cell.row, cell.column)
            # Of several encoders, the named one.
            if place not in by_place or not by_place[place].published:
                by_place[place] = cell
    return list(by_place.values())


def _cells_of(table: PaperTable, entry: Printed, encoder: PaperEncoder) -> list[PaperCell]:
    """The cell of what is printed, and the one beside it where a difference is printed too."""
    numbers = entry.numbers if encoder.is_of_paper(entry) else ()
    of = replace(entry, encoder=encoder.named.as_published.slug) if encoder.named else entry
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
    """The same of the built-in sets: OOD sets in the order of their ID set's partners."""
    if cell.ood_set in ("", AVERAGE):
        return replace(cell, id_set=BUILT_IN)
    theirs, ours = datasets.partners(cell.id_set), datasets.partners(BUILT_IN)
    place = theirs.index(cell.ood_set) if cell.ood_set in theirs else 0
    return replace(cell, id_set=BUILT_IN, ood_set=ours[place])
