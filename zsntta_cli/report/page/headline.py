"""The headline tables: methods by noise ratio and OOD set, marked on each stream."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from zsntta_cli.report.page.document import PageSheet
from zsntta_cli.report.sheet import AVERAGE, CLOSE_MEANS, Best, Close, SheetRow
from zsntta_cli.report.tables import (
    compared,
    marked_text,
    reference_notes,
    run_notes,
    stopped_notes,
    sweep_notes,
)
from zsntta_cli.results.frame import (
    ResultRow,
    ResultStream,
    ResultTable,
    labels,
    setting_name,
    shown,
)
from zsntta_cli.simulation.metrics import METRICS, Metric, metrics_of

STOPPED = "†"  # behind a value of a run that was stopped
WORST_TENTH = "Worst tenth of runs"


def kind_of(stream: ResultStream) -> str:
    """How a stream differs from the usual one, in words."""
    return ", ".join(f"{setting_name(k)} {shown(k, v)}" for k, v in stream.kind)


def features_of(stream: ResultStream) -> str:
    """Which of several features of the same name a stream has: most runs have 1.1.1."""
    return ".".join(str(number + 1) for number in stream.features)


def name_of(stream: ResultStream) -> str:
    """The title of a table."""
    other = f"OTHER FEATURES of the same name ({features_of(stream)})" * any(stream.features)
    return ", ".join(filter(None, [f"ID: {stream.id_set}", stream.encoder, kind_of(stream), other]))


def headlines(table: ResultTable) -> Iterator[PageSheet]:
    """The tables of one ID set and encoder: accuracies under noise, clean streams, AUROC."""
    for stream, rows in table.by_stream().items():
        decided = [row for row in rows if row.decides]
        for title, shown_rows, metrics in (
            ("accuracies in %", [row for row in decided if row.ratio], metrics_of("accuracy")),
            ("clean streams, Acc_S in %", [r for r in decided if not r.ratio], [METRICS["acc_s"]]),
            ("how the scores rank, in %", [row for row in rows if row.ratio], metrics_of("ood")),
        ):
            if shown_rows:
                yield _sheet(table, f"{name_of(stream)}: {title}", shown_rows, metrics)


def _sheet(
    table: ResultTable, title: str, rows: Sequence[ResultRow], metrics: Sequence[Metric]
) -> PageSheet:
    """The table of some rows of one stream, with a body for each ratio."""
    names, ood_sets = labels(rows), table.sets_of(rows)
    columns = [AVERAGE, WORST_TENTH] * (len(ood_sets) > 1) + ood_sets
    shown_metrics = {c: _main(metrics) if c == WORST_TENTH else metrics for c in columns}
    bodies: dict[str, list[SheetRow]] = {}
    every_text: dict[ResultRow, dict[str, list[str]]] = {}
    for ratio, group in itertools.groupby(rows, key=lambda row: row.ratio):
        contest = list(group)
        texts: dict[ResultRow, dict[str, list[str]]] = {row: {} for row in contest}
        for column in columns:
            for metric in shown_metrics[column]:
                for row, text in _cells(table, contest, column, metric):
                    texts[row].setdefault(column, []).append(text)
        head = f"Noise {shown('ratio', ratio)}" if ratio else ""
        every_text |= texts
        bodies[head] = [SheetRow((names[row],), texts[row]) for row in contest]
    heads = {column: tuple(m.head for m in some) for column, some in shown_metrics.items()}
    notes = [
        *_notes(table, names, is_averaged=AVERAGE in columns),
        *sweep_notes(every_text),
    ]
    return PageSheet(title, ("Method",), heads, bodies, notes)


def _main(metrics: Sequence[Metric]) -> Sequence[Metric]:
    """The most important metric of a table."""
    return [metric for metric in metrics if metric.name == "acc_h"] or metrics[:1]


def _cells(
    table: ResultTable, rows: Sequence[ResultRow], column: str, metric: Metric
) -> Iterator[tuple[ResultRow, str]]:
    """The texts of a column, for the rows that have it; all rows saw the same samples."""
    sets = table.ood_sets
    if column == WORST_TENTH:  # nothing is known of its chance
        yield from ((row, metric.text(row.worst_tenth(sets, metric))) for row in rows)
        return
    having = [row for row in rows if column in (AVERAGE, *row.runs)]
    for row, value, mark in compared(table, having, column, metric):
        is_stopped = not (value.is_whole or math.isnan(value.mean))
        text = metric.text(value.mean, value.std) + STOPPED * is_stopped
        yield row, marked_text(text, mark)


# What is said beside the tables.


def legend(sheets: Iterable[PageSheet]) -> str:
    """What bold and underlined values of some tables mean."""
    rows = [(sheet, row) for sheet in sheets for body in sheet.bodies.values() for row in body]
    kinds = {type(text) for sheet, row in rows for text in sheet.texts(row)}
    best = "Bold is the best mean of the rows that saw the same samples." * (Best in kinds)
    if Close not in kinds:
        return best
    return f"{best} An underlined value {CLOSE_MEANS}, and no value between the two is."


def _notes(table: ResultTable, names: Mapping[ResultRow, str], is_averaged: bool) -> Iterator[str]:
    """Which rows, by name, have no average, no rivals, or runs that were stopped."""
    for row in names if is_averaged else ():
        if lacks := row.average(table.ood_sets, "auroc").lacks:
            ratio = shown("ratio", row.ratio)
            yield f"{names[row]} has no average at {ratio} noise: it has {lacks}."
    yield from reference_notes(names)
    stopped = stopped_notes([record for row in names for record in row.records])
    if stopped:
        yield f"{STOPPED} marks a value of a run that was stopped."
    yield from stopped
    yield from run_notes([record for row in names for record in row.records])
