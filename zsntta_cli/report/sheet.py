"""A table for people as plain values: rows of texts under heads, and notes below.

All tables and lists of the program are sheets; forms.py draws them, with a function for each form.
A text knows its mark: Best, Close and Marked are texts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

Row = dict[str, Any]  # of a list; its sheet leaves out the column that tells the sheets apart

AVERAGE = "Average"  # the name of the column of averages
UNDERLINED, BOLD = "An underlined value", "A bold value"  # what marks are where they can be drawn
_BEST_MEANS = "is the best mean of the rows that saw the same samples"
_CLOSE_MEANS = "is not distinguishable from the best over seeds (5 % level, docs/results.md)"


class Best(str):
    """The text of the best value of a column."""


class Close(str):
    """The text of a value that does not differ significantly from the best of its column."""


class Marked(str):
    """A text that ends with a mark: the sign of a verdict, or the letter of a note."""


@dataclass
class Sheet:
    """Rows of texts: first a label for each head, then a value for each head of each column."""

    title: str
    heads: Sequence[str]  # of the labels
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the heads of their values
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # sentences that stand below
    caption: str = ""  # of a floating table in LaTeX
    reference: str = ""  # by which LaTeX refers to it
    command: str = ""  # that makes it again
    above: Sequence[str] = ()  # lines above it: of sheets that are parts of one, of the first
    rules: set[int] = field(default_factory=set)  # rows with a rule above

    def __post_init__(self) -> None:
        """Name the only metric of a table in its title instead of above every column."""
        heads = set(map(tuple, self.columns.values()))
        if len(heads) == 1 and len(head := heads.pop()) == 1 and head[0]:
            self.title = ": ".join(filter(None, [self.title, *head]))
            self.columns = dict.fromkeys(self.columns, ("",))

    def add(
        self, labels: Iterable[str], values: Mapping[str, Sequence[str]], has_rule: bool = False
    ) -> None:
        """Add a row: its labels, and its values by column; missing values are empty texts."""
        if has_rule:
            self.rules.add(len(self.rows))
        row = [*labels]
        for name, heads in self.columns.items():
            row += values.get(name) or [""] * len(heads)
        self.rows.append(row)

    @property
    def inner_heads(self) -> list[str]:
        """The heads of labels and values."""
        return [*self.heads, *chain(*self.columns.values())]

    @property
    def whole_heads(self) -> list[str]:
        """The same, with the name of the column before the heads of values."""
        of_values = (f"{name} {head}" for name, heads in self.columns.items() for head in heads)
        return [*self.heads, *map(str.strip, of_values)]

    @property
    def places(self) -> dict[str, slice]:
        """The positions of each column's values in a row."""
        places, end = {}, len(self.heads)
        for name, heads in self.columns.items():
            places[name] = slice(end, end + len(heads))
            end += len(heads)
        return places

    def side_by_side(self, widths: Mapping[str, int], room: int) -> list[list[str]]:
        """The columns to show side by side: all if they fit, else the average before others."""
        if sum(widths.values()) <= room:
            return [[*self.columns]]
        blocks: list[list[str]] = [[]]
        for name in sorted(self.columns, key=lambda name: name != AVERAGE):
            if blocks[-1] and sum(widths[n] for n in (*blocks[-1], name)) > room:
                blocks.append([])
            blocks[-1].append(name)
        return blocks

    def notes_on(self, close: str, best: str = "") -> list[str]:
        """The notes below, after the meaning of the marks in the table.

        `close` and `best` are the words for these marks; the best is explained if it is named.
        """
        kinds = {*map(type, chain(*self.rows))}
        notes = [f"{best} {_BEST_MEANS}."] * (Best in kinds and bool(best))
        return [*notes, *[f"{close} {_CLOSE_MEANS}."] * (Close in kinds), *self.notes]


def card(title: str, facts: Mapping[str, str]) -> Sheet:
    """One fact per row; empty facts are left out."""
    return Sheet(title, ("", ""), rows=[[name, value] for name, value in facts.items() if value])


def list_sheet(rows: Iterable[Row], heads: Mapping[str, str], title: str = "") -> Sheet:
    """The rows of a list under the heads of some columns."""
    return Sheet(title, [*heads.values()], rows=[[_text(r[name]) for name in heads] for r in rows])


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(value)
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
