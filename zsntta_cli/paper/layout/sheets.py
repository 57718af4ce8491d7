"""Comparisons laid out as the paper's tables are: texts in rows and columns, and footnotes.

A row takes three lines: what is measured, what the paper has, the difference. Light: no NumPy.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zsntta_cli.paper.printed.names import LEAD_COLUMN, METRICS, shown
from zsntta_cli.paper.printed.published import Number, printed
from zsntta_cli.paper.printed.tables import Table

if TYPE_CHECKING:
    from zsntta_cli.paper.comparing import Comparison, Measured

PAPER, DIFFERENCE = "  paper", "  difference"
OUTSIDE_MARK, WITHIN_MARK, PART_MARK = "!", "=", "*"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = {"time_s": 4}  # of a metric; two of all others

Line = tuple[str, ...]  # what stands in front of a line: a text for each head


@dataclass
class Sheet:
    """A part of a table: `lines` have a text for each metric of each column, or nothing."""

    title: str
    heads: Line
    columns: dict[str, tuple[str, ...]]  # heads of the metrics by column
    lines: list[tuple[Line, dict[str, tuple[str, ...]]]] = field(default_factory=list)


@dataclass
class Footnotes:
    """What is said of marked numbers: a letter each."""

    reasons: list[str] = field(default_factory=list)

    def letter(self, reason: str) -> str:
        """The letter of a reason."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return _LETTERS[self.reasons.index(reason)]

    def lines(self) -> list[str]:
        """A line a reason."""
        return [f"{_LETTERS[i]}: {reason}" for i, reason in enumerate(self.reasons)]


def sheets(
    table: Table, found: "Sequence[Comparison]", notes: Footnotes, alone: bool = False
) -> list[Sheet]:
    """A sheet for each part of a table; `alone`: of published numbers, with nothing beside them."""
    groups: dict[str, list[Comparison]] = {}
    for one in found:
        groups.setdefault(one.cell.group, []).append(one)
    return [_sheet(table, group, some, notes, alone) for group, some in groups.items()]


def _sheet(
    table: Table, group: str, found: "Sequence[Comparison]", notes: Footnotes, alone: bool
) -> Sheet:
    columns: dict[str, tuple[str, ...]] = {}
    rows: dict[Line, dict[str, list[Comparison]]] = {}
    for one in found:
        cell = one.cell
        columns[cell.column] = tuple(_head(metric) for metric in cell.metrics)
        rows.setdefault(cell.row, {}).setdefault(cell.column, []).append(one)
    if LEAD_COLUMN in columns:  # it is met in the first row that has one
        columns[LEAD_COLUMN] = columns.pop(LEAD_COLUMN)
    sheet = Sheet(group, table.heads, columns)
    for row, by_column in rows.items():
        sheet.lines += _lines(row, by_column, notes, alone)
    return sheet


def _head(metric: str) -> str:
    return METRICS[metric.partition("_minus")[0]]


def _lines(
    row: Line, by_column: "dict[str, list[Comparison]]", notes: Footnotes, alone: bool
) -> list[tuple[Line, dict[str, tuple[str, ...]]]]:
    """The lines of a row: measured, published, their difference, as far as there is any."""
    every = [one for some in by_column.values() for one in some]

    def texts(text: "Callable[[Comparison], str]") -> dict[str, tuple[str, ...]]:
        return {column: tuple(map(text, some)) for column, some in by_column.items()}

    paper = texts(lambda one: paper_text(one, notes))
    if alone:
        return [(row, paper)]
    rest = ("",) * (len(row) - 1)
    lines = [(row, texts(lambda one: here_text(one.metric, one.measured)))]
    if any(one.published for one in every):
        lines.append(((PAPER, *rest), paper))
    if any(not math.isnan(one.difference) for one in every):
        lines.append(((DIFFERENCE, *rest), texts(difference_text)))
    return lines


def number_text(metric: str, mean: float, std: float = math.nan) -> str:
    """A number with its digits; a dash where there is none."""
    if math.isnan(mean):
        return "-"
    digits = _DIGITS.get(metric, 2)
    sign = "+" if "_minus" in metric else ""
    spread = "" if math.isnan(std) else f"±{std:.{digits}f}"
    return f"{mean:{sign}.{digits}f}{spread}"


def here_text(metric: str, measured: "Measured | None") -> str:
    """What is measured, with a mark where it is a mean over fewer streams than the paper's."""
    if measured is None:
        return "-"
    text = number_text(metric, measured.mean, measured.sets_std)
    return text if measured.is_whole or text == "-" else text + PART_MARK


def paper_text(one: "Comparison", notes: Footnotes) -> str:
    """What is published, with the letter of a footnote where it is doubtful."""
    number = one.published or Number(math.nan)
    letter = notes.letter(one.mark.reason) if one.mark else ""
    return number_text(one.metric, number.mean, number.std) + letter


def difference_text(one: "Comparison") -> str:
    """The difference, with a mark where it is judged."""
    if math.isnan(one.difference):
        return "-"
    mark = {"within": WITHIN_MARK, "outside": OUTSIDE_MARK}.get(one.verdict, "")
    return f"{one.difference:+.{_DIGITS.get(one.metric, 2)}f}{mark}"


def plain_sheet(table: Table) -> Sheet:
    """A table without measurements (7 to 9), as it is."""
    rows: dict[Line, dict[str, tuple[str, ...]]] = {}
    for cell in printed(table.number):
        row = shown(cell.id_set) or cell.settings["property"]
        text = ":".join(cell.texts).replace("~", " ")
        rows.setdefault((row,), {})[shown(cell.ood_set) or cell.method] = (text,)
    # Table 9 prints a cross where there is no pair; its columns stand as table 8's.
    names = [shown(cell.ood_set) for cell in printed(8)] if table.number == 9 else []
    every = [*names, *(name for texts in rows.values() for name in texts)]
    columns: dict[str, tuple[str, ...]] = dict.fromkeys(every, ("",))
    lines = [(row, {c: texts.get(c, ("×",)) for c in columns}) for row, texts in rows.items()]
    return Sheet("", ("ID" if names or table.number == 8 else "",), columns, lines)
