"""The one schema of every CSV and JSON of results: each row contains its full context.

docs/results.md lists the columns. All metrics are fractions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.results.frame import CLEAN, SEEDS, ResultTable, Value
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, differing_settings, preset_of

_BEFORE = (
    "method", "settings", "preset", "encoder", "id_set", "ood_set", "aggregate", "ratio", "noise",
    "order", "limit", "seed", "seeds",
)  # fmt: skip
_BEHIND = ("n_id", "n_ood", "repeated", "complete", "revision", "source")
_OWN_COLUMN = {"ratio", "noise", "order", "limit", "seed"}  # settings that `settings` leaves out

TidyRow = dict[str, Any]


def columns() -> tuple[str, ...]:
    """The names of all columns, in order; each metric has a column for its deviation, too."""
    return (*_BEFORE, *METRICS, *(f"{name}_std" for name in METRICS), *_BEHIND)


def _row(facts: Mapping[str, Any]) -> TidyRow:
    """A row with some values; columns without a value are None."""
    found = ((name, facts.get(name)) for name in columns())
    return {name: None if value != value else value for name, value in found}


def run_rows(records: Iterable[Record]) -> list[TidyRow]:
    """A row for each run, in order."""
    return [
        _row({
            **_facts([record]), "ood_set": record.settings.ood_set,
            "seed": record.settings.stream.seed, **{m: record.metric(m) for m in METRICS},
        })
        for record in records
    ]  # fmt: skip


def table_rows(tables: Iterable[ResultTable], spread: str = SEEDS) -> list[TidyRow]:
    """The rows of tables: one for each cell, averaged over seeds, and for each average."""
    rows = []
    for table in tables:
        for row in table.rows:
            for ood_set in [CLEAN] if CLEAN in row.runs else row.runs:
                cell = {name: row.value(ood_set, name) for name in METRICS}
                rows.append(_folded(list(row.on(ood_set).values()), cell, ood_set=ood_set or None))
            if len(table.ood_sets) > 1 and CLEAN not in row.runs:
                mean = {name: row.average(table.ood_sets, name, spread) for name in METRICS}
                rows.append(_folded(row.records, mean, aggregate="ood_sets"))
    return rows


def _folded(records: Sequence[Record], values: Mapping[str, Value], **facts: Any) -> TidyRow:
    """A row of means over the seeds of some runs; `facts` describe the mean, not each run."""
    first = next(iter(values.values()))
    return _row({
        **_facts(records), "seeds": " ".join(map(str, first.seeds)),
        "complete": all(value.is_whole for value in values.values()), **facts,
        **{name: value.mean for name, value in values.items()},
        **{f"{name}_std": value.std for name, value in values.items()},
    })  # fmt: skip


def _facts(records: Sequence[Record]) -> dict[str, Any]:
    """What runs of one method with the same settings have in common; None where they differ."""
    run = records[0].settings
    seeds = sorted({record.settings.stream.seed for record in records})
    return {
        "method": run.method,
        "settings": _settings_text(run),
        "preset": preset_of(run),
        "encoder": run.encoder,
        "id_set": run.id_set,
        "ratio": run.stream.ratio,
        "noise": run.stream.noise,
        "order": run.stream.order,
        "limit": run.stream.limit,
        "seeds": " ".join(map(str, seeds)),
        "n_id": _common(record.counts["id"] for record in records),
        "n_ood": _common(record.counts["ood"] for record in records),
        "repeated": max(max(record.repeated.values(), default=1.0) for record in records),
        "complete": not any(record.unfinished for record in records),
        "revision": _common(record.revision for record in records),
        "source": "measured",
    }


def _common(values: Iterable[Any]) -> Any:
    """The value that all share; None where they differ."""
    different = set(values)
    return different.pop() if len(different) == 1 else None


def _settings_text(run: RunSettings) -> str:
    """The settings in which a run differs from its preset, without those that have a column."""
    values = differing_settings(run, preset_of(run))
    differing = {name: value for name, value in values.items() if name not in _OWN_COLUMN}
    if run.prompt != datasets.default_prompt(run.id_set):
        differing["prompt"] = run.prompt
    return ";".join(f"{name}={_text(value)}" for name, value in differing.items())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else str(value)
