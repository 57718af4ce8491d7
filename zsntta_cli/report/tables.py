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

from zsntta_cli.report import titles
from zsntta_cli.report.titles import PRESET, shown
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import preset_of

Row = tuple[str, ...]  # the method and the settings that vary, as they are shown
AVERAGE = "Average"


@dataclass(frozen=True)
class Kind:
    """What a table shows of a record."""

    metrics: tuple[str, ...]
    heads: tuple[str, ...]
    lower_is_better: tuple[str, ...] = ()
    spread: str = "seeds"  # ± of an average: its own over seeds, or the mean of its "sets'" ones
    folded: bool = False  # of csv and json: what the table shows, in place of the records


KINDS = {
    "accuracy": Kind(("acc_s", "acc_n", "acc_h"), ("Acc_S", "Acc_N", "Acc_H")),
    "ood": Kind(("auroc", "fpr95", "aupr"), ("AUROC", "FPR95", "AUPR"), ("fpr95",)),
    "flags": Kind(  # recall is Acc_N
        ("acc_s", "acc_n", "acc_h", "precision", "flagged", "auroc", "fpr95"),
        ("Acc_S", "Recall", "Acc_H", "Prec", "Flagged", "AUROC", "FPR95"),
        ("fpr95",),
    ),
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
    id_set: str = ""
    seeds: int = 1


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
    named = tuple(dict.fromkeys(r.settings.ood_set for r in records if r.settings.ood_set))
    for record in records:
        by_ood = groups.setdefault(_row(record, varying), {})
        own = record.settings.ood_set
        for name in (own,) if own else named or ("-",):  # a clean stream is one for all OOD sets
            by_ood.setdefault(name, []).append(record)
    columns = [name for name in named or ("-",) if any(name in row for row in groups.values())]
    cells = {
        row: {name: _fold(some, kind) for name, some in by_ood.items()}
        for row, by_ood in groups.items()
    }
    if len(columns) > 1:
        columns.append(AVERAGE)
        for row, by_ood in groups.items():
            cells[row][AVERAGE] = _average(list(by_ood.values()), kind)
    seeds = {record.settings.stream.seed for record in records}
    heads = ("Method", *(_label(name) for name in varying))
    spread = kind.spread if AVERAGE in columns and len(seeds) > 1 else ""
    title = titles.title(id_set, records, varying, named, spread)
    _mark_best(cells, columns, kind)
    return ResultTable(
        title, heads, kind.heads, tuple(columns), cells, len(seeds) > 1, id_set, len(seeds)
    )


def _varying(records: Sequence[Record]) -> list[str]:
    """Names of the settings that differ between runs of one method, in order.

    What differs with the preset alone is told by the preset's name.
    """
    seen: dict[str, dict[tuple[str, ...], set[Any]]] = {}
    for record in records:
        settings = _settings(record)
        for name, value in settings.items():
            group = (record.settings.method, *([] if name == PRESET else [settings[PRESET]]))
            seen.setdefault(name, {}).setdefault(group, set()).add(value)
    return [name for name, groups in seen.items() if any(len(v) > 1 for v in groups.values())]


def _settings(record: Record) -> dict[str, Any]:
    """All settings of a run that may make a row."""
    settings = record.settings
    flat = {
        PRESET: preset_of(settings), "encoder": settings.encoder, "prompt": settings.prompt,
        **settings.flat(),
    }  # fmt: skip
    return {name: value for name, value in flat.items() if name != "seed"}


def _label(name: str) -> str:
    return {"ratio": "Noise"}.get(name, name.replace("_", " "))


def _row(record: Record, varying: Sequence[str]) -> Row:
    settings = _settings(record)
    return (record.settings.method, *(shown(name, settings.get(name)) for name in varying))


def _fold(records: Sequence[Record], kind: Kind) -> Cell:
    """Mean and sample standard deviation over seeds."""
    return tuple(_value([_metric(r, m) for r in records]) for m in kind.metrics)


def _metric(record: Record, metric: str) -> float:
    return record.metric(metric)


def _value(values: Sequence[float]) -> Value:
    return Value(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0)


def _average(by_set: Sequence[Sequence[Record]], kind: Kind) -> Cell:
    """The mean over OOD sets, folded over seeds: the average Acc_H is the mean of the Acc_H."""
    by_seed: dict[int, list[Record]] = {}
    for record in (record for some in by_set for record in some):
        by_seed.setdefault(record.settings.stream.seed, []).append(record)
    own = [
        _value([float(np.mean([_metric(r, m) for r in some])) for some in by_seed.values()])
        for m in kind.metrics
    ]
    if kind.spread == "seeds":
        return tuple(own)
    folded = [_fold(some, kind) for some in by_set]
    stds = [float(np.mean([cell[i].std for cell in folded])) for i in range(len(own))]
    return tuple(dataclasses.replace(v, std=std) for v, std in zip(own, stds, strict=True))


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
