"""What the paper shows in figures or leaves to its readers: means over parts, ranks of methods.

Means are over the parts of a table (ID sets), ranks are among the methods of each pair by Acc_H,
1 the best, equal ones sharing their mean rank, as in the paper's figure 2. Light: no NumPy.
"""

import math
import statistics
from collections.abc import Mapping, Sequence

from zsntta_cli.paper.comparing import Comparison
from zsntta_cli.paper.layout.sheets import DIFFERENCE, PAPER, Line, Sheet, number_text
from zsntta_cli.paper.printed.names import LEAD_COLUMN, METRICS, shown
from zsntta_cli.paper.printed.published import AVERAGE
from zsntta_cli.paper.printed.tables import BY_OOD, Table

RANK = "Mean rank"
_BY = "acc_h"  # what methods are ranked by

Place = tuple[str, str]  # part, column
Values = Mapping[tuple[Place, Line, str], float]  # by place, row and metric


def aggregate_sheet(table: Table, found: Sequence[Comparison], alone: bool = False) -> Sheet | None:
    """Means over the parts of a table, and mean ranks; None of a table of one part.

    `alone`: of published numbers, with nothing beside them.
    """
    groups = list(dict.fromkeys(one.cell.group for one in found))
    if len(groups) < 2:
        return None
    rows = list(dict.fromkeys(one.cell.row for one in found))
    columns = _columns(table, found)
    sheet = Sheet(f"Mean over {len(groups)} parts (not in the paper)", table.heads, {})
    sheet.columns = {name: tuple(METRICS[m] for m in ms) for name, ms in columns.items()}
    values = {} if alone else {"": _measured(found)}
    values |= {PAPER: _published(found)} if any(one.published for one in found) else {}
    texts = {
        kind: {row: _means(known, row, groups, columns) for row in rows}
        for kind, known in values.items()
    }
    if table.heads == ("Method",) and _BY in table.metrics:
        sheet.columns[RANK] = ("",)
        for kind, by_row in texts.items():
            ranks = mean_ranks(values[kind], rows)
            for row in rows:
                by_row[row][RANK] = [ranks.get(row, math.nan)]
    for row in rows:
        sheet.lines += _lines(row, {kind: by_row[row] for kind, by_row in texts.items()})
    return sheet


def _columns(table: Table, found: Sequence[Comparison]) -> dict[str, tuple[str, ...]]:
    """The columns that all parts have: averages where the others are OOD sets."""
    kept = {one.cell.column: one.cell.metrics for one in found if one.cell.column != LEAD_COLUMN}
    return {shown(AVERAGE): kept[shown(AVERAGE)]} if table.columns == BY_OOD else kept


def _measured(found: Sequence[Comparison]) -> Values:
    return {
        ((one.cell.group, one.cell.column), one.cell.row, one.metric): one.measured.mean
        for one in found
        if one.measured and one.measured.is_whole
    }


def _published(found: Sequence[Comparison]) -> Values:
    return {
        ((one.cell.group, one.cell.column), one.cell.row, one.metric): one.published.mean
        for one in found
        if one.published
    }


def _means(
    known: Values, row: Line, groups: Sequence[str], columns: Mapping[str, tuple[str, ...]]
) -> dict[str, list[float]]:
    """By column and metric the mean over all parts; nan where one of them is missing."""
    return {
        column: [
            statistics.fmean(known.get(((group, column), row, m), math.nan) for group in groups)
            for m in metrics
        ]
        for column, metrics in columns.items()
    }


def mean_ranks(known: Values, rows: Sequence[Line]) -> dict[Line, float]:
    """The mean rank of each row by Acc_H, over the places where all rows have one."""
    places = dict.fromkeys(place for place, _, _ in known)
    ranks: dict[Line, list[float]] = {}
    for place in places:
        scores = [known.get((place, row, _BY), math.nan) for row in rows]
        if place[1] in (shown(AVERAGE), LEAD_COLUMN) or any(map(math.isnan, scores)):
            continue
        for row, score in zip(rows, scores, strict=True):
            better, equal = sum(s > score for s in scores), scores.count(score)
            ranks.setdefault(row, []).append(better + (equal + 1) / 2)
    return {row: statistics.fmean(some) for row, some in ranks.items()}


def _lines(
    row: Line, by_kind: Mapping[str, Mapping[str, list[float]]]
) -> list[tuple[Line, dict[str, tuple[str, ...]]]]:
    """The lines of a row: what is measured, the paper's, the difference; or one of them."""
    rest = ("",) * (len(row) - 1)
    lines = [
        (row if i == 0 else (kind, *rest), {c: tuple(map(_text, v)) for c, v in columns.items()})
        for i, (kind, columns) in enumerate(by_kind.items())
    ]
    if len(by_kind) < 2:
        return lines
    here, paper = by_kind.values()
    differences = {
        column: [a - b for a, b in zip(here[column], paper[column], strict=True)] for column in here
    }
    if all(math.isnan(value) for some in differences.values() for value in some):
        return lines
    signed = {column: tuple(map(_signed, some)) for column, some in differences.items()}
    return [*lines, ((DIFFERENCE, *rest), signed)]


def _text(value: float) -> str:
    return number_text("", value)


def _signed(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.2f}"
