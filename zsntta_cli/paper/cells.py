"""The cells of a table as it is laid out: where each stands, of what it is, what is printed there.

Light: no NumPy. With an encoder of the built-in sets, these stand in for the paper's: equal cells
are one then, and nothing is published of them.
"""

from dataclasses import dataclass, replace

from zsntta_cli import datasets
from zsntta_cli.paper.printed.names import LEAD_COLUMN, column_name, group_name, row_name
from zsntta_cli.paper.printed.published import AVERAGE, USUAL_ENCODER, Number, Printed, printed
from zsntta_cli.paper.printed.tables import Table
from zsntta_cli.settings import PAPER_ENCODERS, TINY, EncoderChoice

BUILT_IN = "shapes"  # stands in for every ID set


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a place, what is to be measured for it, what is published."""

    table: Table
    group: str
    row: tuple[str, ...]
    column: str
    metrics: tuple[str, ...]
    of: Printed  # in whose settings it is measured
    published: tuple[Number, ...]  # for each metric; none where nothing is

    @property
    def is_lead(self) -> bool:
        """Whether it is the difference of an average to ZS-CLIP's."""
        return self.column == LEAD_COLUMN


@dataclass(frozen=True)
class Encoder:
    """What is measured with: a named encoder, or each cell's own where none is named."""

    named: EncoderChoice | None = None

    @property
    def is_built_in(self) -> bool:
        """Whether it is the embedded one, of which there are built-in sets alone."""
        return self.named is not None and self.named.slug == TINY

    def choice(self, cell: Printed) -> EncoderChoice:
        """The encoder of a cell."""
        return self.named or EncoderChoice(cell.encoder)

    def is_of_paper(self, cell: Printed) -> bool:
        """Whether a cell's published numbers are of this encoder, or of one that may be it.

        What made the features of a folder of one's own is not known: it may be the usual one.
        """
        if self.named is None or self.is_built_in:
            return self.named is None
        own = EncoderChoice(cell.encoder)
        if (folder := self.named.folder) is None:
            return (self.named.model, self.named.pretrained) == (own.model, own.pretrained)
        known = folder in {choice.slug for choice in PAPER_ENCODERS}
        return folder == own.slug if known else cell.encoder == USUAL_ENCODER


def cells(table: Table, encoder: Encoder) -> list[Cell]:
    """The cells of a table, in the paper's order."""
    found: dict[tuple[str, tuple[str, ...], str], Cell] = {}
    for one in printed(table.number):
        for cell in _of(table, one, encoder):
            place = (cell.group, cell.row, cell.column)
            if place not in found or not found[place].published:  # of several encoders, the named
                found[place] = cell
    return list(found.values())


def _of(table: Table, one: Printed, encoder: Encoder) -> list[Cell]:
    """The cell of what is printed, and the one beside it where a difference is printed too."""
    numbers = one.numbers if encoder.is_of_paper(one) else ()
    of = replace(one, encoder=encoder.named.slug) if encoder.named else one
    of = _stand_in(of) if encoder.is_built_in else of
    place = group_name(table, of), row_name(table, of)
    whole = len(table.metrics)
    made = [Cell(table, *place, column_name(table, of), table.metrics, of, numbers[:whole])]
    if len(one.texts) > whole:
        made.append(Cell(table, *place, LEAD_COLUMN, table.leads, of, numbers[whole:]))
    return made


def _stand_in(cell: Printed) -> Printed:
    """The same of the built-in sets: OOD sets in the order of their ID set's partners."""
    if cell.ood_set in ("", AVERAGE):
        return replace(cell, id_set=BUILT_IN)
    theirs, ours = datasets.partners(cell.id_set), datasets.partners(BUILT_IN)
    place = theirs.index(cell.ood_set) if cell.ood_set in theirs else 0
    return replace(cell, id_set=BUILT_IN, ood_set=ours[place])
