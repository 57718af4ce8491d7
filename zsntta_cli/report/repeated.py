"""Recorded runs beside the same runs made here: old, new, difference."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from zsntta_cli.report.forms import in_form
from zsntta_cli.report.sheet import Sheet, SheetRow
from zsntta_cli.report.tables import View, run_notes
from zsntta_cli.results import frame
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
    rows = (row for pair in repeated for row in _rows(*pair))
    sheets = list(_sheets(repeated, view))
    for sheet in sheets[-1:]:
        sheet.notes += notes
    return in_form(form, sheets, rows, to_file)


def _rows(old: Record, new: Record) -> Iterator[dict[str, Any]]:
    """A row for each metric that at least one of a run's two records has."""
    run = new.settings
    facts = {
        "method": run.method, "encoder": run.encoder, "id_set": run.id_set, "ood_set": run.ood_set,
        "ratio": run.stream.ratio, "seed": run.stream.seed,
    }  # fmt: skip
    for name in METRICS:
        before, now = old.metric(name), new.metric(name)
        values = {"old": before, "new": now, "difference": now - before}
        texts = {key: None if math.isnan(value) else value for key, value in values.items()}
        if any(value is not None for value in texts.values()):
            yield {**facts, "metric": name, **texts}


def _sheets(repeated: Sequence[Repeated], view: View) -> Iterator[Sheet]:
    """A sheet for each ID set and encoder, with a row for each method, settings and OOD set."""
    olds = {new.settings: old for old, new in repeated}
    for table in frame.tables(new for _, new in repeated):
        sheet = Sheet(
            f"ID: {table.id_set}, {table.encoder}: recorded results and those here",
            ("Method", "OOD set"), {view.head(metric): _HEADS for metric in view.shown},
            command=view.command,
        )  # fmt: skip
        for row, label in frame.labels(table.rows, without=()).items():
            for ood_set in table.columns if frame.CLEAN not in row.runs else [frame.CLEAN]:
                if runs := row.on(ood_set):
                    values = {}
                    for metric in view.shown:
                        new = row.by_seed(ood_set, metric.name)
                        old = {seed: olds[runs[seed].settings].metric(metric) for seed in new}
                        values[view.head(metric)] = _texts(old, new, metric)
                    sheet.rows.append(SheetRow((label, ood_set or "-"), values))
        records = [record for row in table.rows for record in row.records]
        sheet.notes += run_notes(records, view.shown)
        yield sheet


def _texts(old: dict[int, float], new: dict[int, float], metric: Metric) -> list[str]:
    """A metric's old and new mean over the seeds that both have, and the difference."""
    before, now = frame.fold(old), frame.fold(new)
    difference = now.mean - before.mean
    text = metric.text(abs(difference))  # without a sign if it rounds to zero
    is_something = bool(text.strip("0.")) and not math.isnan(difference)
    sign = ("-" if difference < 0 else "+") * is_something
    return [metric.text(before.mean, before.std), metric.text(now.mean, now.std), sign + text]
