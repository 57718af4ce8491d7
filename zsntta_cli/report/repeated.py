"""Recorded runs beside the same runs made here: old, new, difference."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from zsntta_cli.report.forms import FORMS, draw, write_rows
from zsntta_cli.report.sheet import Sheet, SheetRow
from zsntta_cli.report.tables import View, run_notes, stopped_notes
from zsntta_cli.results import frame
from zsntta_cli.results.frame import ResultRow
from zsntta_cli.results.repeating import Repeated
from zsntta_cli.simulation.metrics import METRICS, Metric
from zsntta_cli.simulation.record import Record

_HEADS = ("Old", "New", "Difference")


def render_both(
    repeated: Sequence[Repeated],
    notes: Sequence[str],
    form: str,
    view: View,
    to_file: bool = False,
) -> str:
    """Both results as a text in one of FORMS, with `notes`; csv and json have a row per metric."""
    if FORMS[form].of_rows:
        return write_rows([row for pair in repeated for row in _rows(*pair)], form)
    sheets = list(_sheets(repeated, view))
    for sheet in sheets[-1:]:
        sheet.notes += notes
    return draw(sheets, form, to_file)


def _rows(old: Record, new: Record) -> Iterator[dict[str, Any]]:
    """A row for each metric that at least one of a run's two records has."""
    run = new.settings
    facts = {
        "method": run.method, "encoder": run.encoder, "id_set": run.id_set, "ood_set": run.ood_set,
        "ratio": run.stream.ratio, "seed": run.stream.seed,
    }  # fmt: skip
    for name in METRICS:
        values = [record.metric(name) for record in (old, new)]
        if not all(map(math.isnan, values)):
            texts = dict(zip(("old", "new", "difference"), _with_difference(*values), strict=True))
            yield {**facts, "metric": name, **texts}


def _with_difference(old: float, new: float) -> list[float | None]:
    return [None if math.isnan(value) else value for value in (old, new, new - old)]


def _sheets(repeated: Sequence[Repeated], view: View) -> Iterator[Sheet]:
    """A sheet for each ID set and encoder, with a row for each method, settings and OOD set."""
    olds = {new.settings: old for old, new in repeated}
    for table in frame.tables(new for _, new in repeated):
        names = frame.labels(table.rows, without=())
        rows = [
            SheetRow(
                (_label(row, names[row], view), ood_set or "-"),
                {view.head(metric): _texts(row, ood_set, metric, olds) for metric in view.shown},
            )
            for row in table.rows
            for ood_set in (table.columns if frame.CLEAN not in row.runs else [frame.CLEAN])
            if row.on(ood_set)
        ]
        columns = {view.head(metric): _HEADS for metric in view.shown}
        title = f"ID: {table.id_set}, {table.encoder}: recorded results and those here"
        records = [record for row in table.rows for record in row.records]
        notes = stopped_notes(records) + run_notes(records, view.shown)
        yield Sheet(title, ("Method", "OOD set"), columns, rows, notes, command=view.command)


def _label(row: ResultRow, label: str, view: View) -> str:
    """A row's label with its method as the view names it."""
    return view.labels.get(row.method, row.method) + label.removeprefix(row.method)


def _texts(row: ResultRow, ood_set: str, metric: Metric, olds: dict[Any, Record]) -> list[str]:
    """A metric's old and new mean over the seeds that both have, and the difference."""
    new = row.by_seed(ood_set, metric.name)
    old = {seed: olds[row.on(ood_set)[seed].settings].metric(metric) for seed in new}
    value, before = frame.fold(new), frame.fold(old)
    return [
        metric.text(before.mean, before.std),
        metric.text(value.mean, value.std),
        _signed(value.mean - before.mean, metric),
    ]


def _signed(difference: float, metric: Metric) -> str:
    """A difference with its sign; without one if it rounds to zero."""
    text = metric.text(abs(difference))
    is_something = bool(text.strip("0.")) and not math.isnan(difference)
    return ("-" if difference < 0 else "+") * is_something + text
