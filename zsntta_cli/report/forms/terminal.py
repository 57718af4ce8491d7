"""Draw sheets for the terminal with rich."""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from zsntta_cli.errors import printable
from zsntta_cli.progress import console
from zsntta_cli.report.sheet import Best, Close, Marked, Sheet

_ANY_WIDTH = 10_000  # of what goes to a file or a pipe: as wide as it needs
_FRAME = 3  # characters around a column
_CLOSE = "~"  # behind a value that cannot be told from the best


def tables(sheets: Sequence[Sheet], to_file: bool = False) -> str:
    """Draw sheets one below the other, each with its notes, as wide as the terminal, if any."""
    screen = console(plain=to_file)
    usual = screen.width  # 80 where there is no terminal
    width = usual if screen.is_terminal else _ANY_WIDTH
    with screen.capture() as captured:
        for sheet in sheets:
            for line in sheet.above:
                screen.print(Text(printable(line)))
            for part, needed in rich_tables(sheet, width):
                # No number is cut, however narrow it is; sentences are folded.
                screen.width = max(width, needed) if sheet.columns else usual
                screen.print(part)
            screen.width = width
            for note in sheet.notes_on(f"A value with {_CLOSE}"):
                screen.print(Text(printable(note)))
    return captured.get()


def rich_tables(sheet: Sheet, width: int) -> list[tuple[Table, int]]:
    """A sheet as one or more rich tables, which together show all columns."""
    if not sheet.columns:
        return [(_text_table(sheet), 0)]
    cells = {column: _aligned(sheet.texts(column)) for column in sheet.columns}
    labels = sum(
        max(len(head), *(len(row.labels[i]) for row in sheet.rows), 0) + _FRAME
        for i, head in enumerate(sheet.heads)
    )
    needs = {c: max(len(c), *map(len, texts)) + _FRAME for c, texts in cells.items()}
    parts: list[list[str]] = []
    for column, need in needs.items():
        if parts and labels + sum(needs[c] for c in parts[-1]) + need + 1 <= width:
            parts[-1].append(column)
        else:
            parts.append([column])
    return [
        (_rich(sheet, {c: cells[c] for c in part}), labels + sum(needs[c] for c in part) + 1)
        for part in parts
    ]


def _text_table(sheet: Sheet) -> Table:
    """A sheet of texts alone, which are folded if they are longer than the line."""
    title = Text(printable(sheet.title)) if sheet.title else None
    table = Table(title=title, title_justify="left", show_header=any(sheet.heads))
    for i, head in enumerate(sheet.heads):
        table.add_column(Text(printable(head)), overflow="fold", no_wrap=i == 0)
    for row in sheet.rows:
        table.add_row(*(Text(printable(label, kept="\n")) for label in row.labels))
    return table


def _aligned(rows: Sequence[Sequence[str]]) -> list[Text]:
    """The values of a column side by side, each as wide as its widest."""
    rows = list(zip(*map(_with_room, zip(*rows, strict=True)), strict=True))
    widths = [max(map(len, values)) for values in zip(*rows, strict=True)]
    return [
        Text(" ").join(
            Text(value.rjust(width), "bold" if isinstance(value, Best) else "")
            for value, width in zip(row, widths, strict=True)
        )
        for row in rows
    ]


def _with_room(values: Sequence[str]) -> Sequence[str]:
    """Values with their marks, or a blank instead of one: the digits stay aligned."""
    if not any(isinstance(value, Marked | Close) for value in values):
        return values
    return [v if isinstance(v, Marked) else type(v)(v + _sign(v)) for v in values]


def _sign(value: str) -> str:
    return _CLOSE if isinstance(value, Close) else " "


def _rich(sheet: Sheet, columns: Mapping[str, Sequence[Text]]) -> Table:
    table = Table(title=Text(printable(sheet.title)) if sheet.title else None, title_justify="left")
    has_heads = any(head for column in columns for head in sheet.columns[column])
    for head in sheet.heads:
        table.add_column(Text(printable(head)), no_wrap=True)
    for name, texts in columns.items():
        lines = [Text(printable(name))] * any(columns) + [texts[0]] * has_heads
        table.add_column(Text("\n").join(lines), justify="right", no_wrap=True)
    for i, row in enumerate(sheet.rows):
        if row.has_rule_above:
            table.add_section()
        labels = (Text(printable(label)) for label in row.labels)
        table.add_row(*labels, *(texts[i + 1] for texts in columns.values()))
    return table
