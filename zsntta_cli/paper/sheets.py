"""A table of the paper as sheets, one for each of its parts, with a summary of its cells.

A row takes three lines: the measured values, the paper's, and the differences. This module does not
import NumPy.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from zsntta_cli.paper.cells import PaperEncoder, cells
from zsntta_cli.paper.comparing import Comparison, compare_published, counts
from zsntta_cli.paper.printed.tables import LEAD_COLUMN, METRIC_HEADS, PaperTable
from zsntta_cli.report.forms import FORMS, draw, write_rows
from zsntta_cli.report.sheet import Labels, Marked, Sheet, SheetRow

_BEYOND = "! is beyond what seeds explain: by Student's t in less than 5 % of equal experiments"
_ONE_SEED = (
    "a difference of one seed, where the paper prints no ± to judge it by, is not marked: --seed "
    "0-4 measures five"
)
_SPREAD = "± of an average here: the mean of the sets' deviations, as the paper's"

Letters = dict[str, str]  # the letters of marked numbers, by the remark on these


@dataclass(frozen=True)
class TableContent:
    """The content of a table: its comparisons, and what stands around them."""

    table: PaperTable
    comparisons: Sequence[Comparison]
    above: Sequence[str] | None  # lines below the title; None: only published numbers
    command: str = ""  # the command that shows the table

    @property
    def is_published_alone(self) -> bool:
        """Whether the table only has the published numbers."""
        return self.above is None


def published_content(table: PaperTable, command: str = "") -> TableContent:
    """The content of a table with only the paper's numbers."""
    return TableContent(table, compare_published(cells(table, PaperEncoder())), None, command)


def render(contents: Sequence[TableContent], form: str, to_file: bool = False) -> str:
    """Render tables one after the other, in one of FORMS."""
    if not FORMS[form].of_rows:
        sheets = [sheet for content in contents for sheet in table_sheets(content)]
        return draw(sheets, form, to_file)
    from zsntta_cli.paper import rows

    every = [row for content in contents for row in rows.table_rows(content)]
    return write_rows(every, form, rows.columns())


def table_sheets(content: TableContent) -> list[Sheet]:
    """Make a sheet for each part of a table; the last one has the notes."""
    table, comparisons = content.table, content.comparisons
    title = f"Table {table.number} ({table.label}): {table.title}"
    letters: Letters = {}
    sheets = _parts(content, letters)
    remarks = [f"{letter}: {reason}" for reason, letter in letters.items()]
    sheets[-1].notes = [*remarks, *_notes(table, comparisons)]
    sheets[-1].notes += [] if content.is_published_alone else [counts(comparisons)]
    sheets[0].above = (title, *(content.above or ()))
    for sheet in sheets:
        sheet.command = content.command
    return sheets


def _parts(content: TableContent, letters: Letters) -> list[Sheet]:
    groups: dict[str, list[Comparison]] = {}
    for comparison in content.comparisons:
        groups.setdefault(comparison.cell.group, []).append(comparison)
    return [_part(content, group, of_group, letters) for group, of_group in groups.items()]


def _part(
    content: TableContent, group: str, comparisons: Sequence[Comparison], letters: Letters
) -> Sheet:
    columns: dict[str, Labels] = {}
    by_row: dict[Labels, dict[str, list[Comparison]]] = {}
    for comparison in comparisons:
        cell = comparison.cell
        columns[cell.column] = tuple(_head(metric) for metric in cell.metrics)
        by_row.setdefault(cell.row, {}).setdefault(cell.column, []).append(comparison)
    if LEAD_COLUMN in columns:  # it is met in the first row that has one, and comes last
        columns[LEAD_COLUMN] = columns.pop(LEAD_COLUMN)
    sheet = Sheet(group, content.table.heads, columns)
    for row, by_column in by_row.items():
        if content.is_published_alone:
            sheet.rows.append(SheetRow(row, _texts(by_column, lambda c: _paper_text(c, letters))))
        else:
            sheet.rows += _three_lines(row, by_column, letters, bool(sheet.rows))
    return sheet


def _head(metric: str) -> str:
    return METRIC_HEADS[metric.partition("_minus")[0]]


def _three_lines(
    row: Labels, by_column: Mapping[str, list[Comparison]], letters: Letters, is_next: bool
) -> list[SheetRow]:
    """The lines of a row: measured, published and their difference, as far as these exist."""
    every = [comparison for of_column in by_column.values() for comparison in of_column]
    paper = _texts(by_column, lambda c: _paper_text(c, letters))
    has_paper = any(c.published for c in every)
    rest = ("",) * (len(row) - 1)
    lines = [SheetRow(row, _texts(by_column, _measured_text), is_next and has_paper)]
    if has_paper:
        lines.append(SheetRow(("  paper", *rest), paper))
    if not all(math.isnan(c.difference) for c in every):
        lines.append(SheetRow(("  difference", *rest), _texts(by_column, _difference_text)))
    return lines


def _texts(
    by_column: Mapping[str, Iterable[Comparison]], text: Callable[[Comparison], str]
) -> dict[str, list[str]]:
    return {column: list(map(text, of_column)) for column, of_column in by_column.items()}


def _number_text(metric: str, mean: float, std: float = math.nan, is_signed: bool = False) -> str:
    """A number with its decimal places; a dash for nan, and a sign for differences."""
    if math.isnan(mean):
        return "-"
    sign = "+" if is_signed or "_minus" in metric else ""
    spread = "" if math.isnan(std) else f"±{std:.2f}"
    return f"{mean:{sign}.2f}{spread}"


def _measured_text(comparison: Comparison) -> str:
    measured = comparison.measured
    if measured is None:
        return "-"
    return _number_text(comparison.metric, measured.mean, measured.sets_std)


def _paper_text(comparison: Comparison, letters: Letters) -> str:
    """The published number, with the letter of a note if it is doubtful."""
    number, remark = comparison.published, comparison.remark
    if number is None:
        return "-"
    text = _number_text(comparison.metric, number.mean, number.std)
    if remark is None:
        return text
    return Marked(text + letters.setdefault(remark.reason, ascii_lowercase[len(letters)]))


def _difference_text(comparison: Comparison) -> str:
    """The difference, with a mark if seeds do not explain it."""
    text = _number_text(comparison.metric, comparison.difference, is_signed=True)
    return Marked(f"{text}!") if comparison.is_beyond_seeds else text


def _notes(table: PaperTable, comparisons: Sequence[Comparison]) -> list[str]:
    """The notes that a reader of the table needs."""
    notes = [f"note: {note}" for note in table.notes if any(c.published for c in comparisons)]
    if any(len(c.measured.seeds) > 1 for c in comparisons if c.measured):
        notes.append(f"note: {_SPREAD}")
    notes += _lacking(comparisons)
    records = [record for c in comparisons if c.measured for record in c.measured.records]
    if records:
        # It imports NumPy, which printed numbers do not need.
        from zsntta_cli.simulation.notes import strongest

        notes += [f"note: {text}" for text in strongest(n for r in records for n in r.notes)]
    sets = dict.fromkeys(n for c in comparisons if c.measured for n in c.measured.miscounted)
    if sets:
        notes.append(f"note: of other images than the paper's, so not marked: {', '.join(sets)}")
    compared = [c for c in comparisons if not math.isnan(c.difference)]
    if any(math.isnan(c.most) for c in compared):
        notes.append(f"note: {_ONE_SEED}")
    if any(c.is_beyond_seeds for c in compared):
        notes.append(_BEYOND)
    return notes


def _lacking(comparisons: Sequence[Comparison]) -> list[str]:
    """Why some rows have no average, in one line for all rows that lack the same sets."""
    rows: dict[tuple[str, str, str], dict[str, None]] = {}
    for comparison in comparisons:
        cell, measured = comparison.cell, comparison.measured
        if measured and measured.lacks:
            place = (cell.group, cell.column, measured.lacks)
            rows.setdefault(place, {})[" ".join(cell.row)] = None
    return [
        f"note: {', '.join(filter(None, (group, column)))}: no average of {', '.join(names)}: "
        f"there is {lacks}"
        for (group, column, lacks), names in rows.items()
    ]
