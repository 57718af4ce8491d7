"""A table for people as plain values: rows of texts under heads, and notes below.

All tables of the program are sheets; forms/ draws them, with one function for each form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Labels = tuple[str, ...]  # what stands in front of a row: a text for each head


WIDTHS = ("page", "column")  # of a paper with two columns
AVERAGE = "Average"  # the name of the column of averages
CLOSE_MEANS = "is not distinguishable from the best over seeds (5 % level, docs/results.md)"


class Best(str):
    """The text of the best value of a column."""


class Close(str):
    """The text of a value that does not differ significantly from the best of its column."""


class Marked(str):
    """A text whose last character is a mark: the sign of a verdict, or the letter of a note."""


@dataclass
class SheetRow:
    """The texts of a row: its labels, and for each column those under its heads, or nothing."""

    labels: Labels
    values: Mapping[str, Sequence[str]]
    has_rule_above: bool = False


@dataclass
class Sheet:
    """Rows of texts: one for each head of each column, or none if there is no result."""

    title: str
    heads: Labels
    columns: Mapping[str, Labels]  # the heads of each column's values
    rows: list[SheetRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # sentences that stand below
    width: str = ""  # for what LaTeX fits it: one of WIDTHS, or else the text of an article
    caption: str = ""  # of a floating table in LaTeX
    reference: str = ""  # by which LaTeX refers to it
    command: str = ""  # that makes it again
    above: Sequence[str] = ()  # lines above it: of sheets that are parts of one, of the first

    def __post_init__(self) -> None:
        """Tell the only metric of a table in its title, in place of above every column."""
        heads = {head for heads in self.columns.values() for head in heads}
        is_one = len(heads) == 1 and all(len(heads) == 1 for heads in self.columns.values())
        if is_one and "" not in heads:
            self.title = ": ".join(filter(None, [self.title, *heads]))
            self.columns = dict.fromkeys(self.columns, ("",))

    def texts(self, column: str) -> list[Sequence[str]]:
        """A column's values in all rows, its heads first."""
        heads = self.columns[column]
        return [heads, *(row.values.get(column, ("",) * len(heads)) for row in self.rows)]

    def plain(self) -> list[list[str]]:
        """Each row as one list of texts."""
        return [
            [*row.labels, *(text for name in self.columns for text in self._of(row, name))]
            for row in self.rows
        ]

    def notes_on(self, close: str) -> list[str]:
        """The notes below: the meaning of `close`, if a value has that mark, and the others."""
        is_marked = any(isinstance(text, Close) for row in self.plain() for text in row)
        return [f"{close} {CLOSE_MEANS}."] * is_marked + self.notes

    def _of(self, row: SheetRow, column: str) -> Sequence[str]:
        return row.values.get(column, ("",) * len(self.columns[column]))
