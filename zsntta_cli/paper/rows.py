"""The paper's tables as rows of results/tidy.py: a measured and a published row for each cell.

The paper's columns come after the columns of every CSV; docs/paper.md lists them.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from zsntta_cli.paper.cells import PaperCell
from zsntta_cli.paper.comparing import Comparison, Measured
from zsntta_cli.paper.printed.published import AVERAGE, LEAD, PaperNumber, Printed
from zsntta_cli.paper.printed.tables import (
    LEADS,
    set_name,
)
from zsntta_cli.paper.runs import cell_runs
from zsntta_cli.paper.sheets import TableContent
from zsntta_cli.results import tidy
from zsntta_cli.settings import EncoderChoice

_OWN_METRICS = (LEAD, *LEADS)
_OVER_CORRUPTIONS = "corruptions"  # table 15's cells are averages over these


def columns() -> tuple[str, ...]:
    """The names of all columns, in order."""
    names = map(_name, _OWN_METRICS)
    values = (column for name in names for column in (name, f"{name}_std"))
    return (*tidy.columns(), "table", "part", "row", "column", *values, "note")


def _name(metric: str) -> str:
    """The column of a metric; a lead is the difference to ZS-CLIP's."""
    return metric.replace("_minus_zs-clip", "_lead")


def table_rows(content: TableContent) -> list[dict[str, Any]]:
    """The rows of a table, cell by cell; a value that is not known is None."""
    return [{**dict.fromkeys(columns()), **row} for row in _rows(content)]


def _rows(content: TableContent) -> Iterator[dict[str, Any]]:
    cells: dict[tuple[Any, ...], list[Comparison]] = {}
    for comparison in content.comparisons:
        cell = comparison.cell
        column = set_name(AVERAGE) if cell.is_lead else cell.column  # leads join their average
        cells.setdefault((cell.group, cell.row, column), []).append(comparison)
    for (part, row, column), comparisons in cells.items():
        number = content.table.number
        place = {"table": number, "part": part, "row": ", ".join(row), "column": column}
        measured = {c.metric: c.measured for c in comparisons if c.measured}
        if measured:
            cell = comparisons[0].cell
            yield {**_measured_row(cell, measured), **place}
        published = {c.metric: c.published for c in comparisons if c.published}
        if published:
            note = "; ".join(dict.fromkeys(c.remark.reason for c in comparisons if c.remark))
            yield {**_published_row(comparisons[0].cell, published), **place, "note": note or None}


def _measured_row(cell: PaperCell, by_metric: Mapping[str, Measured]) -> dict[str, Any]:
    measured = next(iter(by_metric.values()))
    facts = {
        **tidy.common_facts(measured.records),
        **_sets(cell.of),
        "seeds": " ".join(map(str, measured.seeds)),
        "note": f"of other images: {', '.join(measured.miscounted)}" * bool(measured.miscounted)
        or None,
    }
    facts["complete"] = facts["complete"] and not measured.lacks
    return {**facts, **_values({m: (v.mean, v.sets_std) for m, v in by_metric.items()})}


def _published_row(cell: PaperCell, by_metric: Mapping[str, PaperNumber]) -> dict[str, Any]:
    encoder = EncoderChoice(cell.published_encoder).slug
    run = cell_runs(cell, encoder, "paper", (0,))[0][0]
    facts = {**tidy.run_facts(run), **_sets(cell.of), "complete": True, "source": tidy.PUBLISHED}
    return {**facts, **_values({m: (n.mean, n.std) for m, n in by_metric.items()})}


def _sets(of: Printed) -> dict[str, Any]:
    """The sets of a cell, and the sets that it averages over; a clean stream has no OOD set."""
    is_average, is_clean = of.ood_set == AVERAGE, of.ratio == 0
    over = tidy.OVER_OOD_SETS if is_average and not is_clean else None
    return {
        "id_set": of.id_set,
        "ood_set": None if is_average or is_clean else of.ood_set or None,
        "aggregate": _OVER_CORRUPTIONS if of.id_set.endswith("-c") else over,
    }


def _values(by_metric: Mapping[str, tuple[float, float]]) -> dict[str, float | None]:
    """The mean and the standard deviation of each metric, by column: fractions, None for nan."""
    return {
        column: None if math.isnan(number) else round(number / 100, 12)
        for metric, numbers in by_metric.items()
        for column, number in zip((_name(metric), f"{_name(metric)}_std"), numbers, strict=True)
    }
