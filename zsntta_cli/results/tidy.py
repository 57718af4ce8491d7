"""The one schema of every CSV and JSON of results: each row contains its full context.

docs/results.md lists the columns. All metrics are fractions.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.results.frame import CLEAN, SEEDS, ResultTable
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, differing_settings, preset_of

_OF_STREAM = ("ratio", "noise", "order", "limit", "seed")  # settings with a column of their own
TidyRow = dict[str, Any]


def columns() -> tuple[str, ...]:
    """The names of all columns, in order; each metric has a column for its deviation, too."""
    return (
        "method", "settings", "preset", "encoder", "id_set", "ood_set", "aggregate", *_OF_STREAM,
        "seeds", *METRICS, *(f"{name}_std" for name in METRICS),
        "n_id", "n_ood", "repeated", "complete", "revision", "source",
    )  # fmt: skip


def run_rows(records: Iterable[Record]) -> list[TidyRow]:
    """A row for each run, in order."""
    rows = []
    for record in records:
        run, metrics = record.settings, {name: record.metric(name) for name in METRICS}
        rows.append(_row([record], ood_set=run.ood_set, seed=run.stream.seed, **metrics))
    return rows


def table_rows(tables: Iterable[ResultTable], spread: str = SEEDS) -> list[TidyRow]:
    """The rows of tables: one for each value, averaged over seeds, and one for each average."""
    rows = []
    for table in tables:
        for row in table.rows:
            means: list[tuple[str, str, Sequence[Record], dict[str, Any]]] = []
            for name in [CLEAN] if CLEAN in row.runs else row.runs:
                of_set = {metric: row.value(name, metric) for metric in METRICS}
                means.append(("ood_set", name, [*row.on(name).values()], of_set))
            if len(table.columns) > 1 and CLEAN not in row.runs:
                of_sets = {name: row.average(table.columns, name, spread) for name in METRICS}
                means.append(("aggregate", "ood_sets", row.records, of_sets))
            for column, name, records, values in means:
                rows.append(_row(
                    records,
                    seeds=" ".join(map(str, sorted(values["acc_s"].by_seed))),
                    complete=all(value.is_whole for value in values.values()),
                    **{column: name or None},
                    **{metric: value.mean for metric, value in values.items()},
                    **{f"{metric}_std": value.std for metric, value in values.items()},
                ))  # fmt: skip
    return rows


def _row(records: Sequence[Record], **values: Any) -> TidyRow:
    """A row of runs of one method with the same settings, with some values; others are None."""
    run = records[0].settings
    facts = {
        **vars(run.stream),
        "seed": None,
        "method": run.method,
        "settings": _settings_text(run),
        "preset": preset_of(run),
        "encoder": run.encoder,
        "id_set": run.id_set,
        "seeds": " ".join(map(str, sorted({record.settings.stream.seed for record in records}))),
        "n_id": _common(record.counts["id"] for record in records),
        "n_ood": _common(record.counts["ood"] for record in records),
        "repeated": max(max(record.repeated.values(), default=1.0) for record in records),
        "complete": not any(record.unfinished for record in records),
        "revision": _common(record.revision for record in records),
        "source": "measured",
        **values,
    }
    values = {name: facts.get(name) for name in columns()}
    return {name: None if value != value else value for name, value in values.items()}


def _common(values: Iterable[Any]) -> Any:
    """The value that all share; None where they differ."""
    different = set(values)
    return different.pop() if len(different) == 1 else None


def _settings_text(run: RunSettings) -> str:
    """The settings in which a run differs from its preset, without those that have a column."""
    differing = differing_settings(run, preset_of(run))
    if run.prompt != datasets.default_prompt(run.id_set):
        differing["prompt"] = run.prompt
    texts = {True: "true", False: "false", None: "none"}
    return ";".join(
        f"{name}={texts[value] if value is None or isinstance(value, bool) else value}"
        for name, value in differing.items()
        if name not in _OF_STREAM
    )
