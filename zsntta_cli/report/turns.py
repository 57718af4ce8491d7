"""Sets in turn as a sheet: the result of each method on each of them, averaged over seeds."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from zsntta_cli.report.sheet import Labels, Sheet, SheetRow
from zsntta_cli.results.frame import ResultRow, ResultTable, Value, fold
from zsntta_cli.simulation.metrics import Metric
from zsntta_cli.simulation.record import Record, RecordPart

_NO_SET = "-"


def turn_sheets(
    table: ResultTable[Any],
    title: str,
    heads: Labels,
    labels_of: Callable[[ResultRow[Any]], Labels],
    metrics: Mapping[str, Metric],
) -> Iterator[Sheet]:
    """A sheet of the parts of each OOD set of a table, where its sets come in turn.

    `metrics` are by the heads of their columns; `labels_of` gives the labels of a row.
    """
    for ood_set in table.columns:
        rows = list[SheetRow]()
        for row in table.rows:
            rows += _rows(labels_of(row), list(row.on(ood_set).items()), metrics, bool(rows))
        if rows:
            yield Sheet(f"{title}, set by set", (*heads, "ID", "OOD"), {"": tuple(metrics)}, rows)


def _rows(
    labels: Labels, runs: Sequence[tuple[int, Any]], metrics: Mapping[str, Metric], is_next: bool
) -> Iterator[SheetRow]:
    """A row for each part of runs, by seed, that all have the same parts."""
    records: dict[int, Record] = {seed: run.record for seed, run in runs}
    whole = {seed: r.parts for seed, r in records.items() if r.parts and not r.unfinished}
    for number, part in enumerate(next(iter(whole.values()), ())):
        by_seed = {seed: parts[number] for seed, parts in whole.items()}
        values = [(metric, _value(by_seed, metric)) for metric in metrics.values()]
        texts = [metric.text(value.mean, value.std) for metric, value in values]
        place = (part.id_set, part.ood_set or _NO_SET)
        yield SheetRow((*labels, *place), {"": texts}, has_rule_above=is_next and not number)


def _value(by_seed: Mapping[int, RecordPart], metric: Metric) -> Value:
    """A metric of a part, over the seeds that have it."""
    values = {seed: part.metrics.get(metric.name, math.nan) for seed, part in by_seed.items()}
    return fold({seed: value for seed, value in values.items() if not math.isnan(value)})
