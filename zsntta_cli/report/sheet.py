"""A table for people as plain values: rows of texts under heads, and notes below.

All tables of the program are sheets; forms/ draws them, with one function for each form.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]  # of a list; its sheet leaves out the column that tells the sheets apart
Labels = tuple[str, ...]  # what stands in front of a row: a text for each head


AVERAGE = "Average"  # the name of the column of averages
UNDERLINED, BOLD = "An underlined value", "A bold value"  # what marks are where they can be drawn
BEST_MEANS = "is the best mean of the rows that saw the same samples"
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

    def values(self, row: SheetRow, column: str) -> Sequence[str]:
        """What a row has in a column; empty texts where it has nothing."""
        return row.values.get(column) or ("",) * len(self.columns[column])

    def plain(self) -> list[list[str]]:
        """Each row as one list of texts."""
        return [
            [*row.labels, *(text for name in self.columns for text in self.values(row, name))]
            for row in self.rows
        ]

    def notes_on(self, close: str, best: str = "") -> list[str]:
        """The notes below, after what the marks mean that its values have.

        `close` and `best` are what these marks are called; those of `best` are told if it is named.
        """
        kinds = {type(text) for row in self.plain() for text in row}
        notes = [f"{best} {BEST_MEANS}."] * (Best in kinds and bool(best))
        return [*notes, *[f"{close} {CLOSE_MEANS}."] * (Close in kinds), *self.notes]


def card(title: str, facts: Mapping[str, str]) -> Sheet:
    """One fact per row; empty facts are left out."""
    rows = [SheetRow((name, value), {}) for name, value in facts.items() if value]
    return Sheet(title, ("", ""), {}, rows)


def list_sheet(rows: Iterable[Row], heads: Mapping[str, str], title: str = "") -> Sheet:
    """The rows of a list under the heads of some columns."""
    texts = [SheetRow(tuple(_list_text(row[name]) for name in heads), {}) for row in rows]
    return Sheet(title, tuple(heads.values()), {}, texts)


def _list_text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(value)
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
