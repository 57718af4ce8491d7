"""Records to tables in the paper's form: what is a row, a column, the best value of a column.

Per ID set: rows are methods and settings that vary, columns OOD sets. Seeds are folded into mean ±
std. How a table is drawn stands in formats.py.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zsntta_cli.simulation.record import Record

Row = tuple[str, ...]  # the method and the settings that vary, as they are shown
AVERAGE = "Average"


@dataclass(frozen=True)
class Kind:
    """What a table shows of a record."""

    group: str
    metrics: tuple[str, ...]
    heads: tuple[str, ...]
    lower_is_better: tuple[str, ...] = ()


KINDS = {
    "accuracy": Kind("accuracies", ("acc_s", "acc_n", "acc_h"), ("Acc_S", "Acc_N", "Acc_H")),
    "ood": Kind("detection", ("auroc", "fpr95", "aupr"), ("AUROC", "FPR95", "AUPR"), ("fpr95",)),
}


@dataclass(frozen=True)
class Value:
    """A metric of one cell: mean and sample deviation over seeds."""

    mean: float
    std: float = math.nan
    is_best: bool = False

    def text(self, with_std: bool) -> str:
        """Percent with two digits; a dash where there is no sample."""
        if math.isnan(self.mean):
            return "-"
        spread = f"±{100 * self.std:.2f}" if with_std and not math.isnan(self.std) else ""
        return f"{100 * self.mean:.2f}{spread}"


Cell = tuple[Value, ...]  # a value for each metric


@dataclass(frozen=True)
class ResultTable:
    """One table: `cells[row][column]`, absent where there is no run."""

    title: str
    heads: Row  # of the row's parts
    metrics: tuple[str, ...]  # heads of a cell's values
    columns: tuple[str, ...]
    cells: dict[Row, dict[str, Cell]]
    with_std: bool


def result_tables(records: Sequence[Record], kind: Kind) -> list[ResultTable]:
    """A table for each ID set, in order of appearance."""
    id_sets = dict.fromkeys(record.settings.id_set for record in records)
    return [
        _result_table(id_set, [r for r in records if r.settings.id_set == id_set], kind)
        for id_set in id_sets
    ]


def _result_table(id_set: str, records: Sequence[Record], kind: Kind) -> ResultTable:
    varying = _varying(records)
    groups: dict[Row, dict[str, list[Record]]] = {}
    for record in records:
        row = _row(record, varying)
        groups.setdefault(row, {}).setdefault(record.settings.ood_set or "-", []).append(record)
    columns = list(dict.fromkeys(name for row in groups.values() for name in row))
    cells = {
        row: {name: _fold(some, kind) for name, some in by_ood.items()}
        for row, by_ood in groups.items()
    }
    if len(columns) > 1:
        columns.append(AVERAGE)
        for row, by_ood in groups.items():
            cells[row][AVERAGE] = _average([r for some in by_ood.values() for r in some], kind)
    seeds = {record.settings.stream.seed for record in records}
    heads = ("Method", *(_label(name) for name in varying))
    title = ", ".join([f"ID: {id_set}", *_fixed(records[0], varying), *_partial(records)])
    _mark_best(cells, columns, kind)
    return ResultTable(title, heads, kind.heads, tuple(columns), cells, len(seeds) > 1)


def _varying(records: Sequence[Record]) -> list[str]:
    """Names of the settings that differ between runs of one method, in order."""
    seen: dict[str, dict[str, set[Any]]] = {}
    for record in records:
        for name, value in _settings(record).items():
            seen.setdefault(name, {}).setdefault(record.settings.method, set()).add(value)
    return [name for name, methods in seen.items() if any(len(v) > 1 for v in methods.values())]


def _settings(record: Record) -> dict[str, Any]:
    """All settings of a run that may make a row."""
    settings = record.settings
    flat = {"encoder": settings.encoder, "prompt": settings.prompt}
    for group in (settings.stream, settings.threshold, settings.options):
        flat |= dataclasses.asdict(group)
    return {name: value for name, value in flat.items() if name != "seed"}


def _fixed(record: Record, varying: Sequence[str]) -> list[str]:
    """What a title says of the settings that do not vary."""
    ratio = [] if "ratio" in varying else [f"noise {_shown('ratio', record.settings.stream.ratio)}"]
    limit = record.settings.stream.limit
    head = [f"first {limit:,} samples"] if limit and "limit" not in varying else []
    return [*ratio, *head, record.settings.encoder]


def _partial(records: Sequence[Record]) -> list[str]:
    """What a title says of a run that was stopped."""
    return [
        f"PARTIAL: {r.settings.method} against {r.settings.ood_set or '-'} stopped after "
        f"{sum(r.counts.values()):,} of {sum(r.counts.values()) + r.unfinished:,} items"
        for r in records
        if r.unfinished
    ]


def _label(name: str) -> str:
    return {"ratio": "Noise"}.get(name, name.replace("_", " "))


def _row(record: Record, varying: Sequence[str]) -> Row:
    settings = _settings(record)
    return (record.settings.method, *(_shown(name, settings.get(name)) for name in varying))


def _shown(name: str, value: Any) -> str:
    if name == "ratio":
        return f"{value:.0%}" if round(value, 2) == value else f"{value:.4g}"
    if name == "fixed":
        return "adaptive" if value is None else str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def _fold(records: Sequence[Record], kind: Kind) -> Cell:
    """Mean and sample standard deviation over seeds."""
    return tuple(_value([_metric(r, kind, m) for r in records]) for m in kind.metrics)


def _metric(record: Record, kind: Kind, metric: str) -> float:
    return float(getattr(getattr(record, kind.group), metric))


def _value(values: Sequence[float]) -> Value:
    return Value(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0)


def _average(records: Sequence[Record], kind: Kind) -> Cell:
    """The mean over OOD sets, folded over seeds: the average Acc_H is the mean of the Acc_H."""
    by_seed: dict[int, list[Record]] = {}
    for record in records:
        by_seed.setdefault(record.settings.stream.seed, []).append(record)
    return tuple(
        _value([float(np.mean([_metric(r, kind, m) for r in some])) for some in by_seed.values()])
        for m in kind.metrics
    )


def _mark_best(cells: dict[Row, dict[str, Cell]], columns: Sequence[str], kind: Kind) -> None:
    """Mark the best value of each column among rows that differ in the method only."""
    for rest in dict.fromkeys(row[1:] for row in cells):
        rows = [row for row in cells if row[1:] == rest]
        for name in columns:
            rivals = [cells[row][name] for row in rows if name in cells[row]]
            if len(rivals) > 1:
                for row in rows:
                    if name in cells[row]:
                        cells[row][name] = _marked(cells[row][name], rivals, kind)


def _marked(cell: Cell, rivals: Sequence[Cell], kind: Kind) -> Cell:
    marked = []
    for i, metric in enumerate(kind.metrics):
        means = [rival[i].mean for rival in rivals if not math.isnan(rival[i].mean)]
        pick = min if metric in kind.lower_is_better else max
        marked.append(
            dataclasses.replace(cell[i], is_best=bool(means) and cell[i].mean == pick(means))
        )
    return tuple(marked)
