"""Aggregates that the paper's tables do not print: means over parts, and ranks of methods.

Means are over the parts of a table (ID sets). Ranks are among the methods of each pair, by Acc_H: 1
is the best, and equal methods share their mean rank, as in the paper's figure 2. This module does
not import NumPy.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from zsntta_cli.paper.comparing import Comparison, Measured
from zsntta_cli.paper.printed.published import AVERAGE, PaperNumber
from zsntta_cli.paper.printed.tables import BY_OOD, LEAD_COLUMN, RANK, PaperTable, set_name
from zsntta_cli.report.sheet import Labels
from zsntta_cli.results import frame

_BY = "acc_h"  # the metric by which methods are ranked
_RANKS = "Mean rank"  # the column of ranks

CellPlace = tuple[str, str]  # part, column
ByRow = Mapping[Labels, Mapping[tuple[CellPlace, str], float]]  # numbers by place and metric


def over_parts(table: PaperTable, comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Make a further part with the means over a table's parts, and mean ranks; none of one part."""
    parts = list(dict.fromkeys(c.cell.group for c in comparisons))
    if len(parts) < 2:
        return []
    columns = _columns(table, comparisons)
    measured = _means(values_by_row(comparisons, _measured), parts, columns)
    published = _means(values_by_row(comparisons, _published), parts, columns)
    is_published = any(c.published for c in comparisons)
    # Table 0 has no remarks, so means get none.
    cells = {c.cell.row: replace(c.cell, of=replace(c.cell.of, table=0)) for c in comparisons}
    part = f"Mean over {len(parts)} parts (not in the paper)"
    means = []
    for (row, column, metric), mean in measured.items():
        cell = replace(cells[row], group=part, column=column, metrics=columns[column])
        number = PaperNumber(published[row, column, metric]) if is_published else None
        value = Measured(mean, miscounted=_miscounted(comparisons, row, column))
        means.append(Comparison(cell, metric, value, number))
    return means


def _miscounted(comparisons: Sequence[Comparison], row: Labels, column: str) -> tuple[str, ...]:
    """The sets of a mean that are not the published ones; a rank is of all rows and columns."""
    values = [
        c.measured
        for c in comparisons
        if c.measured and (column == _RANKS or (c.cell.row, c.cell.column) == (row, column))
    ]
    return tuple(dict.fromkeys(name for value in values for name in value.miscounted))


def _columns(table: PaperTable, comparisons: Sequence[Comparison]) -> dict[str, tuple[str, ...]]:
    """The columns that all parts have (of OOD sets only the average), and that of ranks."""
    columns = {c.cell.column: c.cell.metrics for c in comparisons if not c.cell.is_lead}
    if table.columns == BY_OOD:
        average = set_name(AVERAGE)
        columns = {average: columns[average]}
    has_ranks = table.heads == ("Method",) and _BY in table.metrics
    return {**columns, _RANKS: (RANK,)} if has_ranks else columns


def values_by_row(
    comparisons: Sequence[Comparison], value: Callable[[Comparison], float]
) -> dict[Labels, dict[tuple[CellPlace, str], float]]:
    """The numbers of each row, by their place and metric."""
    by_row: dict[Labels, dict[tuple[CellPlace, str], float]] = {}
    for c in comparisons:
        by_row.setdefault(c.cell.row, {})[(c.cell.group, c.cell.column), c.metric] = value(c)
    return by_row


def _measured(comparison: Comparison) -> float:
    return comparison.measured.mean if comparison.measured else math.nan


def _published(comparison: Comparison) -> float:
    return comparison.published.mean if comparison.published else math.nan


def _means(
    by_row: ByRow, parts: Sequence[str], columns: Mapping[str, tuple[str, ...]]
) -> dict[tuple[Labels, str, str], float]:
    """The mean over all parts by row, column and metric; nan if a part is missing."""

    def mean(row: Labels, column: str, metric: str) -> float:
        values = by_row[row]
        return statistics.fmean(values.get(((part, column), metric), math.nan) for part in parts)

    ranks = mean_ranks(by_row)
    return {
        (row, column, metric): ranks[row] if metric == RANK else mean(row, column, metric)
        for row in by_row
        for column, metrics in columns.items()
        for metric in metrics
    }


def mean_ranks(by_row: ByRow) -> dict[Labels, float]:
    """The mean rank of each row by Acc_H, over the places where all rows have a number."""
    scores = {
        row: {
            place: number
            for (place, metric), number in values.items()
            if metric == _BY and place[1] not in (set_name(AVERAGE), LEAD_COLUMN)
        }
        for row, values in by_row.items()
    }
    return {
        row: statistics.fmean(by_place.values()) if by_place else math.nan
        for row, by_place in frame.mean_ranks(scores).items()
    }
