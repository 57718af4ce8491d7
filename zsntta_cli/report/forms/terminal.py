"""Draw sheets for the terminal with rich."""

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from zsntta_cli.errors import printable
from zsntta_cli.progress import console
from zsntta_cli.report.sheet import AVERAGE, Best, Close, Marked, Sheet

_ANY_WIDTH = 10_000  # of what goes to a file or a pipe: as wide as it needs
_FRAME = 3  # characters around a column
_EDGE = 1  # and at the end of a line
_LEAST_LABEL = 12  # characters to which a label is folded where the values need the room
_CLOSE = "~"  # behind a value that cannot be told from the best

Block = dict[str, list[Text]]  # by column, its lines: the heads first, then those of the rows


def tables(sheets: Sequence[Sheet], to_file: bool = False) -> str:
    """Draw sheets one below the other, each with its notes, as wide as the terminal, if any."""
    screen = console(plain=to_file)
    usual = screen.width  # 80 where there is no terminal
    width = usual if screen.is_terminal else _ANY_WIDTH
    with screen.capture() as captured:
        for sheet in sheets:
            for line in sheet.above:
                screen.print(Text(printable(line)))
            if sheet.title:
                screen.print(Text(printable(sheet.title), "italic"))
            for block, needed in rich_tables(sheet, width):
                # No number is cut, however narrow it is; sentences are folded.
                screen.width = max(width, needed) if sheet.columns else usual
                screen.print(block)
            screen.width = width
            for note in sheet.notes_on(f"A value with {_CLOSE}"):
                screen.print(Text(printable(note)))
    return captured.get()


def rich_tables(sheet: Sheet, width: int) -> list[tuple[Table, int]]:
    """A sheet as one or more rich tables, which together show all columns.

    Beside each stands the least width at which none of its values is cut. Where one table would be
    too wide, the average comes first.
    """
    if not sheet.columns:
        return [(_text_table(sheet), 0)]
    labels = [
        max(len(head), *(len(row.labels[i]) for row in sheet.rows), 0)
        for i, head in enumerate(sheet.heads)
    ]
    whole = {column: _lines(sheet, column) for column in sheet.columns}
    if _width(labels, whole) <= width:
        return [(_rich(sheet, whole), _width(labels, whole))]
    least = [min(label, _LEAST_LABEL) for label in labels]
    return [(_rich(sheet, b), _width(least, b)) for b in _blocks(sheet, labels, least, width)]


def _blocks(
    sheet: Sheet, labels: Sequence[int], least: Sequence[int], width: int
) -> Iterator[Block]:
    """The columns, the average first, in blocks that fit beside the labels.

    A column that does not fit by itself is divided. Where not even one value fits beside the
    labels, these are folded.
    """
    single = [
        {column: _lines(sheet, column, i, i + 1)}
        for column, heads in sheet.columns.items()
        for i in range(len(heads))
    ]
    is_folded = max(_width(labels, block) for block in single) > width
    beside = least if is_folded else labels
    block: Block = {}
    for column in sorted(sheet.columns, key=lambda column: column != AVERAGE):
        for lines in _divided(sheet, column, beside, width):
            if block and (column in block or _width(beside, {**block, column: lines}) > width):
                yield block
                block = {}
            block[column] = lines
    yield block


def _divided(sheet: Sheet, column: str, labels: Sequence[int], width: int) -> Iterator[list[Text]]:
    """A column, or parts of it that fit beside the labels."""
    first, count = 0, len(sheet.columns[column])
    for end in range(1, count + 1):
        fits_more = end < count and (
            _width(labels, {column: _lines(sheet, column, first, end + 1)}) <= width
        )
        if not fits_more:
            yield _lines(sheet, column, first, end)
            first = end


def _width(labels: Sequence[int], block: Block) -> int:
    """The characters that a table takes."""
    columns = [max(len(name), *map(len, lines)) for name, lines in block.items()]
    return sum(n + _FRAME for n in (*labels, *columns)) + _EDGE


def _text_table(sheet: Sheet) -> Table:
    """A sheet of texts alone, which are folded if they are longer than the line."""
    table = Table(show_header=any(sheet.heads))
    for i, head in enumerate(sheet.heads):
        table.add_column(Text(printable(head)), overflow="fold", no_wrap=i == 0)
    for row in sheet.rows:
        table.add_row(*(Text(printable(label, kept="\n")) for label in row.labels))
    return table


def _lines(sheet: Sheet, column: str, first: int = 0, end: int | None = None) -> list[Text]:
    """The values of a column, or some of each row, side by side, each as wide as its widest."""
    rows = [row[first : end if end is not None else len(row)] for row in sheet.texts(column)]
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


def _rich(sheet: Sheet, block: Block) -> Table:
    table = Table()
    has_heads = any(head for column in block for head in sheet.columns[column])
    for head in sheet.heads:
        table.add_column(Text(printable(head)), overflow="fold")
    for name, lines in block.items():
        heads = [Text(printable(name))] * any(block) + [lines[0]] * has_heads
        table.add_column(Text("\n").join(heads), justify="right", no_wrap=True)
    for i, row in enumerate(sheet.rows):
        if row.has_rule_above:
            table.add_section()
        labels = (Text(printable(label)) for label in row.labels)
        table.add_row(*labels, *(lines[i + 1] for lines in block.values()))
    return table
