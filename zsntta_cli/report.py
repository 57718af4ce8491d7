"""Records to tables and files: the only place that rounds or formats a metric."""

import csv
import dataclasses
import io
import json
import math
import statistics
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from zsntta_cli.progress import console
from zsntta_cli.simulate import Record

_METRICS = ("acc_s", "acc_n", "acc_h")
_HEADS = ("Acc_S", "Acc_N", "Acc_H")

Row = tuple[str, ...]  # the method and the settings that vary, as they are shown
Triple = tuple[tuple[float, float], ...]  # (mean, std) of Acc_S, Acc_N, Acc_H


def render(records: Sequence[Record], form: str, to_file: bool = False) -> str:
    """Records as a text: "table" (for the terminal, if there is one), "json" or "csv"."""
    if form == "json":
        return as_json(records)
    if form == "csv":
        return as_csv(records)
    screen = console(plain=to_file)
    with screen.capture() as captured:
        for table in tables(records, screen.width):
            screen.print(table)
    return captured.get()


def as_json(records: Sequence[Record]) -> str:
    """All records, complete."""
    return json.dumps([record.to_dict() for record in records], indent=1) + "\n"


def as_csv(records: Sequence[Record]) -> str:
    """A line a record; nested names are joined by dots."""
    rows = [_flat(record.to_dict()) for record in records]
    fields = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(plain: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in plain.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def tables(records: Sequence[Record], width: int) -> list[Table]:
    """The paper's form, per ID set: rows are methods and settings that vary, columns OOD sets.

    Seeds are folded into mean ± std. The best value of a column is bold among rows that differ in
    the method only. What is wider than `width` is cut into several tables.
    """
    id_sets = dict.fromkeys(record.settings.id_set for record in records)
    return [
        table
        for id_set in id_sets
        for table in _id_set_tables(
            id_set, [r for r in records if r.settings.id_set == id_set], width
        )
    ]


def _id_set_tables(id_set: str, records: Sequence[Record], width: int) -> list[Table]:
    varying = _varying(records)
    cells: dict[Row, dict[str, list[Record]]] = {}
    for record in records:
        row = _row(record, varying)
        cells.setdefault(row, {}).setdefault(record.settings.ood_set or "-", []).append(record)
    columns = list(dict.fromkeys(name for row in cells.values() for name in row))
    values = {row: {name: _fold(group) for name, group in row_cells.items()}
              for row, row_cells in cells.items()}  # fmt: skip
    if len(columns) > 1:
        for by_ood in values.values():
            by_ood["Average"] = _average(list(by_ood.values()))
        columns.append("Average")
    seeds = len({record.settings.stream.seed for record in records})
    heads = ("Method", *(_label(name) for name in varying))
    return _cut(f"ID: {id_set}", heads, values, columns, seeds > 1, width)


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


def _label(name: str) -> str:
    return {"ratio": "Noise"}.get(name, name.replace("_", " "))


def _row(record: Record, varying: Sequence[str]) -> Row:
    settings = _settings(record)
    shown = (_shown(name, settings.get(name)) for name in varying)
    return (record.settings.method, *shown)


def _shown(name: str, value: Any) -> str:
    if name == "ratio":
        return f"{value:.0%}" if round(value, 2) == value else f"{value:.4g}"
    return "-" if value is None else str(value)


def _fold(records: Sequence[Record]) -> Triple:
    """Mean and sample standard deviation over seeds."""
    return tuple(
        _mean_std([getattr(record.accuracies, metric) for record in records]) for metric in _METRICS
    )


def _mean_std(values: Sequence[float]) -> tuple[float, float]:
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def _average(cells: Sequence[Triple]) -> Triple:
    """The mean over OOD sets of each metric; the paper's average Acc_H is that of the Acc_H."""
    return tuple(
        (statistics.fmean(cell[i][0] for cell in cells), math.nan) for i in range(len(_METRICS))
    )


def _cut(
    title: str,
    heads: Row,
    values: dict[Row, dict[str, Triple]],
    columns: Sequence[str],
    with_std: bool,
    width: int,
) -> list[Table]:
    """As many tables as it takes to show all columns in `width` characters."""
    cell_width = 3 * (_number_width(with_std) + 1) + 2
    row_width = sum(
        max(len(head), *(len(row[i]) for row in values)) + 3 for i, head in enumerate(heads)
    )
    at_once = max(1, (width - row_width) // cell_width)
    return [
        _table(title, heads, values, columns[start : start + at_once], with_std)
        for start in range(0, len(columns), at_once)
    ]


def _table(
    title: str,
    heads: Row,
    values: dict[Row, dict[str, Triple]],
    columns: Sequence[str],
    with_std: bool,
) -> Table:
    table = Table(title=title, title_justify="left")
    for head in heads:
        table.add_column(head, no_wrap=True)
    for name in columns:
        subheads = " ".join(head.rjust(_number_width(with_std)) for head in _HEADS)
        table.add_column(f"{name}\n{subheads}", justify="right", no_wrap=True)
    methods = {row[0] for row in values}
    previous: Row | None = None
    for row, cells in values.items():
        if previous is not None and previous[0] != row[0]:
            table.add_section()
        best = {
            name: _best([c[name] for r, c in values.items() if r[1:] == row[1:] and name in c])
            for name in columns
        }
        texts = [_cell(cells.get(name), best[name], with_std, len(methods) > 1) for name in columns]
        table.add_row(*row, *texts)
        previous = row
    return table


def _best(cells: Sequence[Triple]) -> tuple[float, ...]:
    return tuple(
        max((c[i][0] for c in cells if not math.isnan(c[i][0])), default=math.nan)
        for i in range(len(_METRICS))
    )


def _number_width(with_std: bool) -> int:
    return 11 if with_std else 6


def _cell(cell: Triple | None, best: tuple[float, ...], with_std: bool, with_best: bool) -> str:
    if cell is None:
        return ""
    texts = []
    for (mean, std), top in zip(cell, best, strict=True):
        text = _number(mean, std, with_std).rjust(_number_width(with_std))
        texts.append(f"[bold]{text}[/bold]" if with_best and mean == top else text)
    return " ".join(texts)


def _number(mean: float, std: float, with_std: bool) -> str:
    """Percent with two digits; a dash where there is no sample."""
    if math.isnan(mean):
        return "-"
    spread = f"±{100 * std:.2f}" if with_std and not math.isnan(std) else ""
    return f"{100 * mean:.2f}{spread}"
