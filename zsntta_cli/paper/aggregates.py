"""What the paper shows in figures or leaves to its readers: means over parts, ranks of methods.

Means are over the parts of a table (ID sets), ranks are among the methods of each pair by Acc_H,
1 the best, equal ones sharing their mean rank, as in the paper's figure 2. Light: no NumPy.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from zsntta_cli.paper.comparing import Comparison
from zsntta_cli.paper.printed.published import AVERAGE
from zsntta_cli.paper.printed.tables import (
    BY_OOD,
    LEAD_COLUMN,
    METRIC_HEADS,
    PaperTable,
    set_name,
)
from zsntta_cli.report.sheet import Labels, Sheet, SheetRow
from zsntta_cli.results import frame

PAPER, DIFFERENCE = "  paper", "  difference"
RANK = "Mean rank"
_BY = "acc_h"  # what methods are ranked by
_DIGITS = {"time_s": 4}  # of a metric; two of all others

Place = tuple[str, str]  # part, column
ByRow = Mapping[Labels, Mapping[tuple[Place, str], float]]  # by place and metric


def number_text(metric: str, mean: float, std: float = math.nan, is_signed: bool = False) -> str:
    """A number with its digits; a dash where there is none, a sign where it is a difference."""
    if math.isnan(mean):
        return "-"
    digits = _DIGITS.get(metric, 2)
    sign = "+" if is_signed or "_minus" in metric else ""
    spread = "" if math.isnan(std) else f"±{std:.{digits}f}"
    return f"{mean:{sign}.{digits}f}{spread}"


def aggregate_sheet(
    table: PaperTable, comparisons: Sequence[Comparison], is_published_alone: bool = False
) -> Sheet | None:
    """Means over the parts of a table, and mean ranks; None of a table of one part."""
    groups = list(dict.fromkeys(c.cell.group for c in comparisons))
    if len(groups) < 2:
        return None
    columns = _columns(table, comparisons)
    heads = {name: tuple(METRIC_HEADS[m] for m in metrics) for name, metrics in columns.items()}
    has_ranks = table.heads == ("Method",) and _BY in table.metrics
    kinds = {} if is_published_alone else {"": values_by_row(comparisons, _measured)}
    if any(c.published for c in comparisons):
        kinds[PAPER] = values_by_row(comparisons, _published)
    means: dict[str, dict[Labels, dict[str, list[float]]]] = {}
    for kind, by_row in kinds.items():
        ranks = mean_ranks(by_row)
        means[kind] = {row: _means(values, groups, columns) for row, values in by_row.items()}
        for row in by_row if has_ranks else ():
            means[kind][row][RANK] = [ranks[row]]
    title = f"Mean over {len(groups)} parts (not in the paper)"
    sheet = Sheet(title, table.heads, {**heads, **({RANK: ("",)} if has_ranks else {})})
    for row in dict.fromkeys(c.cell.row for c in comparisons):
        by_kind = {kind: by_row[row] for kind, by_row in means.items()}
        sheet.rows += _lines(row, by_kind, bool(sheet.rows))
    return sheet


def _columns(table: PaperTable, comparisons: Sequence[Comparison]) -> dict[str, tuple[str, ...]]:
    """The columns that all parts have: averages where the others are OOD sets."""
    columns = {c.cell.column: c.cell.metrics for c in comparisons if c.cell.column != LEAD_COLUMN}
    average = set_name(AVERAGE)
    return {average: columns[average]} if table.columns == BY_OOD else columns


def values_by_row(
    comparisons: Sequence[Comparison], value: Callable[[Comparison], float]
) -> dict[Labels, dict[tuple[Place, str], float]]:
    """The numbers of each row, by where they stand and by metric."""
    by_row: dict[Labels, dict[tuple[Place, str], float]] = {}
    for c in comparisons:
        by_row.setdefault(c.cell.row, {})[(c.cell.group, c.cell.column), c.metric] = value(c)
    return by_row


def _measured(comparison: Comparison) -> float:
    return comparison.measured.mean if comparison.measured else math.nan


def _published(comparison: Comparison) -> float:
    return comparison.published.mean if comparison.published else math.nan


def _means(
    values: Mapping[tuple[Place, str], float],
    groups: Sequence[str],
    columns: Mapping[str, tuple[str, ...]],
) -> dict[str, list[float]]:
    """By column and metric the mean over all parts; nan where one of them is missing."""

    def mean(column: str, metric: str) -> float:
        by_part = {group: values.get(((group, column), metric), math.nan) for group in groups}
        return frame.average({group: {0: number} for group, number in by_part.items()}).mean

    return {column: [mean(column, m) for m in metrics] for column, metrics in columns.items()}


def mean_ranks(by_row: ByRow) -> dict[Labels, float]:
    """The mean rank of each row by Acc_H, over the places where all rows have one."""
    scores = {
        row: {
            place: number
            for (place, metric), number in values.items()
            if metric == _BY and place[1] not in (set_name(AVERAGE), LEAD_COLUMN)
        }
        for row, values in by_row.items()
    }
    ranks = frame.mean_ranks(scores)
    return {
        row: statistics.fmean(by_place.values()) if by_place else math.nan
        for row, by_place in ranks.items()
    }


def _lines(
    row: Labels, by_kind: Mapping[str, Mapping[str, list[float]]], is_next: bool
) -> list[SheetRow]:
    """The lines of a row: what is measured, the paper's, the difference; or one of them."""
    rest = ("",) * (len(row) - 1)
    texts = [
        {column: [number_text("", mean) for mean in means] for column, means in columns.items()}
        for columns in by_kind.values()
    ]
    first = SheetRow(row, texts[0], is_next and len(texts) > 1)
    if len(texts) < 2:
        return [first]
    here, paper = by_kind.values()
    differences = {c: [a - b for a, b in zip(here[c], paper[c], strict=True)] for c in here}
    lines = [first, SheetRow((PAPER, *rest), texts[1])]
    if all(math.isnan(number) for numbers in differences.values() for number in numbers):
        return lines
    signed = {c: [number_text("", n, is_signed=True) for n in ns] for c, ns in differences.items()}
    return [*lines, SheetRow((DIFFERENCE, *rest), signed)]
