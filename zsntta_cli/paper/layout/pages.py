"""A table of the paper as a page: its parts, its footnotes, what its cells sum up to.

Light: no NumPy.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from zsntta_cli.paper.aggregates import aggregate_sheet
from zsntta_cli.paper.cells import Encoder, cells
from zsntta_cli.paper.comparing import (
    DEVIATIONS,
    MISPRINT,
    OUTSIDE,
    UNKNOWN,
    WITHIN,
    Comparison,
    published_alone,
)
from zsntta_cli.paper.layout.drawing import Page, latex_page, markdown_page, rich_page
from zsntta_cli.paper.layout.exports import csv_text, json_text, plain, plain_texts
from zsntta_cli.paper.layout.sheets import (
    OUTSIDE_MARK,
    PART_MARK,
    WITHIN_MARK,
    Footnotes,
    plain_sheet,
    sheets,
)
from zsntta_cli.paper.printed.tables import Table

_RULE = (
    f"{WITHIN_MARK} within: |difference| <= {DEVIATIONS} of its standard deviations, which come "
    f"from the measured seeds or else the paper's ± (tables 20, 21), and 0.005 for rounding; "
    f"{OUTSIDE_MARK} outside; neither: no spread is known"
)
_SPREAD = "± of an average here: the mean of the sets' deviations, as the paper's"


def published_text(table: Table, form: str, to_file: bool = False) -> str:
    """The paper's numbers of a table, in one of the forms."""
    found = published_alone(cells(table, Encoder())) if table.is_measured else []
    return _text(table, found, None, form, to_file)


def text(
    table: Table,
    found: Sequence[Comparison],
    under: Sequence[str],
    form: str,
    to_file: bool = False,
) -> str:
    """A table that was measured, in one of the forms; `under` are lines below its title."""
    return _text(table, found, under, form, to_file)


def _text(
    table: Table,
    found: Sequence[Comparison],
    under: Sequence[str] | None,
    form: str,
    to_file: bool,
) -> str:
    if form in ("json", "csv"):
        rows = [plain(one) for one in found] or plain_texts(table.number, plain_sheet(table))
        return json_text(rows) if form == "json" else csv_text(rows)
    made = page(table, found, under)
    if form == "table":
        return rich_page(made, to_file)
    return markdown_page(made) if form == "markdown" else latex_page(made)


def page(table: Table, found: Sequence[Comparison], under: Sequence[str] | None) -> Page:
    """A table as people read it; `under` None: what is published, with nothing beside it."""
    title = f"Table {table.number} ({table.label}): {table.title}"
    if not table.is_measured:
        return Page(title, (), [plain_sheet(table)], [f"note: {n}" for n in table.notes])
    notes, alone = Footnotes(), under is None
    drawn = sheets(table, found, notes, alone)
    if (means := aggregate_sheet(table, found, alone)) is not None:
        drawn.append(means)
    foot = [*notes.lines(), *_notes(table, found)]
    foot += [] if alone else [summary(found)]
    return Page(title, under or (), drawn, foot)


def _notes(table: Table, found: Sequence[Comparison]) -> list[str]:
    """What a reader must know."""
    measured = [one.measured for one in found if one.measured]
    said = [f"note: {note}" for note in table.notes if any(one.published for one in found)]
    if any(one.seeds > 1 for one in measured):
        said.append(f"note: {_SPREAD}")
    if any(not one.is_whole for one in measured):
        said.append(f"{PART_MARK} a mean over fewer sets than the paper's, compared with nothing")
    if any(one.verdict in (WITHIN, OUTSIDE) for one in found):
        said.append(_RULE)
    return said


def summary(found: Sequence[Comparison]) -> str:
    """One line: cells within, outside, without a known spread, and the largest difference."""
    counts = Counter(one.verdict for one in found)
    measured = sum(one.measured is not None and not math.isnan(one.measured.mean) for one in found)
    if not any(one.published for one in found):
        return f"{measured:,} numbers measured, nothing is published of them"
    parts = [f"{counts[WITHIN]:,} within", f"{counts[OUTSIDE]:,} outside"]
    parts += [f"{counts[UNKNOWN]:,} without a known spread"]
    parts += [f"{counts[MISPRINT]:,} misprinted"] * bool(counts[MISPRINT])
    printed = sum(not math.isnan(one.published.mean) for one in found if one.published)
    judged = [one for one in found if one.verdict in (WITHIN, OUTSIDE, UNKNOWN)]
    line = f"{sum(counts[v] for v in counts if v):,} of {printed:,} numbers compared: "
    line += ", ".join(parts)
    if not judged:
        return line
    worst = max(judged, key=lambda one: abs(one.difference))
    return f"{line}; largest difference {worst.difference:+.2f} ({where(worst)})"


def where(one: Comparison) -> str:
    """Where a comparison stands in its table."""
    cell = one.cell
    named = filter(None, (cell.group, " ".join(cell.row), cell.column, one.metric))
    return ", ".join(named)


def check_lines(by_table: Mapping[Table, Sequence[Comparison]]) -> list[str]:
    """A line a table, and one of all."""
    lines = [f"Table {table.number:2}: {summary(found)}" for table, found in by_table.items()]
    every = [one for found in by_table.values() for one in found]
    return [*lines, f"All tables: {summary(every)}"]
