"""How results are written: rich tables, Markdown, LaTeX, JSON, CSV."""

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from zsntta_cli.errors import printable
from zsntta_cli.progress import console
from zsntta_cli.report.tables import Cell, Kind, ResultTable, Value, result_tables
from zsntta_cli.simulation.record import Record

_ANY_WIDTH = 10_000  # of what goes to a file or a pipe: as wide as it needs
TABLE = "table"  # drawn for the terminal, if there is one
_DIGITS = 6  # "100.00"
_STD_DIGITS = 12  # "100.00±10.00"


def render(records: Sequence[Record], form: str, kind: Kind, to_file: bool = False) -> str:
    """Records as a text in one of FORMATS; "table" is drawn for the terminal, if there is one."""
    if form == TABLE:
        return _rich(records, kind, to_file)
    return FORMATS[form](records, kind)


def _rich(records: Sequence[Record], kind: Kind, to_file: bool) -> str:
    screen = console(plain=to_file)
    width = screen.width if screen.is_terminal else _ANY_WIDTH
    with screen.capture() as captured:
        for table in result_tables(records, kind):
            screen.width = max(width, *_widths(table))  # no number is cut, however narrow it is
            for part in rich_tables(table, width):
                screen.print(part)
    return captured.get()


def _digits(table: ResultTable) -> int:
    return _STD_DIGITS if table.with_std else _DIGITS


def _widths(table: ResultTable) -> list[int]:
    """Characters that a drawing with each one of the columns takes."""
    rows = sum(
        max(len(head), *(len(row[i]) for row in table.cells)) + 3
        for i, head in enumerate(table.heads)
    )
    numbers = len(table.metrics) * (_digits(table) + 1) - 1
    return [rows + max(len(name), numbers) + 4 for name in table.columns]


def rich_tables(table: ResultTable, width: int) -> list[Table]:
    """A result table as rich tables: as many as it takes to show all columns in `width`."""
    widths = dict(zip(table.columns, _widths(table), strict=True))
    numbers = len(table.metrics) * (_digits(table) + 1) - 1
    parts: list[list[str]] = []
    left = 0
    for name, alone in widths.items():
        if not parts or left < (more := max(len(name), numbers) + 3):
            parts.append([name])
            left = width - alone
        else:
            parts[-1].append(name)
            left -= more
    return [_rich_table(table, columns, _digits(table)) for columns in parts]


def _rich_table(table: ResultTable, columns: Sequence[str], digits: int) -> Table:
    drawn = Table(title=Text(printable(table.title)), title_justify="left")
    for head in table.heads:
        drawn.add_column(head, no_wrap=True)
    heads = " ".join(head.rjust(digits) for head in table.metrics)
    for name in columns:
        drawn.add_column(Text(f"{printable(name)}\n{heads}"), justify="right", no_wrap=True)
    previous = ""
    for row, cells in table.cells.items():
        if previous not in ("", row[0]):
            drawn.add_section()
        previous = row[0]
        drawn.add_row(
            *(Text(printable(part)) for part in row),
            *(_rich_cell(cells.get(name), table, digits) for name in columns),
        )
    return drawn


def _rich_cell(cell: Cell | None, table: ResultTable, digits: int) -> str:
    texts = [value.text(table.with_std).rjust(digits) for value in cell or ()]
    return " ".join(
        f"[bold]{text}[/bold]" if value.is_best else text
        for text, value in zip(texts, cell or (), strict=True)
    )


def _markdown(records: Sequence[Record], kind: Kind) -> str:
    """GitHub's tables, one for each ID set."""

    def bold(value: Value, text: str) -> str:
        return f"**{text}**" if value.is_best else text

    parts = []
    for table in result_tables(records, kind):
        heads = [*table.heads, *(f"{name} {m}" for name in table.columns for m in table.metrics)]
        rule = ["---"] * len(table.heads) + ["---:"] * (len(heads) - len(table.heads))
        lines = [heads, rule, *_plain_rows(table, bold)]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append(f"**{table.title}**\n\n{text}\n")
    return "\n".join(parts)


def _latex(records: Sequence[Record], kind: Kind) -> str:
    """Tables with booktabs rules, as the paper's, one for each ID set."""

    def bold(value: Value, text: str) -> str:
        text = text.replace("±", r" $\pm$ ")
        return rf"\textbf{{{text}}}" if value.is_best else text

    return "\n".join(_latex_table(table, bold) for table in result_tables(records, kind))


def _latex_table(table: ResultTable, bold: Callable[[Value, str], str]) -> str:
    span, before = len(table.metrics), len(table.heads)
    names = [rf"\multicolumn{{{span}}}{{c}}{{{_escaped(name)}}}" for name in table.columns]
    rules = "".join(
        rf"\cmidrule(lr){{{before + 1 + span * i}-{before + span * (i + 1)}}}"
        for i in range(len(table.columns))
    )
    metrics = [_latex_metric(head) for _ in table.columns for head in table.metrics]
    lines = [
        f"% {table.title}",
        rf"\begin{{tabular}}{{{'l' * before}*{{{span * len(table.columns)}}}{{c}}}}",
        r"\toprule",
        " & ".join([*[""] * before, *names]) + r" \\",
        rules,
        " & ".join([*map(_escaped, table.heads), *metrics]) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in _plain_rows(table, bold, _escaped)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_metric(head: str) -> str:
    name, _, index = head.partition("_")
    return rf"$\text{{{name}}}_\text{{{index}}}$" if index else name


def _escaped(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text


def _plain_rows(
    table: ResultTable,
    bold: Callable[[Value, str], str],
    escaped: Callable[[str], str] = lambda text: text.replace("|", r"\|"),
) -> list[list[str]]:
    """The rows with a text a value, empty where there is no run."""
    rows = []
    for row, cells in table.cells.items():
        texts = [escaped(part) for part in row]
        for name in table.columns:
            cell = cells.get(name)
            texts += (
                [bold(v, v.text(table.with_std)) for v in cell]
                if cell
                else [""] * len(table.metrics)
            )
        rows.append(texts)
    return rows


def _json(records: Sequence[Record], kind: Kind) -> str:
    """All records, complete; or the table's cells."""
    return json.dumps(_rows(records, kind), indent=1) + "\n"


def _rows(records: Sequence[Record], kind: Kind) -> list[dict[str, Any]]:
    return _folded(records, kind) if kind.folded else [record.to_dict() for record in records]


def _folded(records: Sequence[Record], kind: Kind) -> list[dict[str, Any]]:
    """What the tables show, an object a cell: fractions, and deviations where seeds were folded."""
    return [
        {
            "id_set": table.id_set, "ood_set": column,
            **{head.lower().replace(" ", "_"): p for head, p in zip(table.heads, row, strict=True)},
            "seeds": table.seeds,
            **{m: _plain(v.mean) for m, v in zip(kind.metrics, cell, strict=True)},
            **{
                f"{m}_std": _plain(v.std) if table.seeds > 1 else None
                for m, v in zip(kind.metrics, cell, strict=True)
            },
        }
        for table in result_tables(records, kind)
        for row, cells in table.cells.items()
        for column, cell in cells.items()
    ]  # fmt: skip


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def _csv(records: Sequence[Record], kind: Kind) -> str:
    """A line a record, or a cell of the table; nested names are joined by dots."""
    rows = [_flat(row) for row in _rows(records, kind)]
    fields = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(plain: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in plain.items():
        flat |= (
            _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        )
    return flat


FORMATS: dict[str, Callable[[Sequence[Record], Kind], str]] = {
    "json": _json,
    "csv": _csv,
    "markdown": _markdown,
    "latex": _latex,
}
