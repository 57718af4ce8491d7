"""The forms of results: one table for people in four, rows of values for programs in two.

Each form is a function and a line of FORMS; every command that writes results takes its forms from
here. No NumPy.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from zsntta_cli.errors import printable
from zsntta_cli.report.latex import latex
from zsntta_cli.report.sheet import BOLD, UNDERLINED, Best, Close, Marked, Sheet

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

Rows = Sequence[dict[str, Any]]


def in_form(
    form: str,
    sheets: Iterable[Sheet],
    rows: Iterable[dict[str, Any]] = (),
    to_file: bool = False,
    columns: Sequence[str] = (),
) -> str:
    """A result in one of FORMS: its sheets for people or its rows for programs.

    `to_file`: not for a terminal, so as wide as necessary. `columns` names the columns of a CSV in
    case there are no rows.
    """
    write = FORMS[form].write
    if FORMS[form].of_rows:
        return write(list(rows), columns)
    return terminal(list(sheets), to_file) if form == TABLE else write(list(sheets))


# Rows of values, for programs.


def csv_text(rows: Rows, columns: Sequence[str] = ()) -> str:
    """A head and one line per row; None is empty, lists are JSON, numbers are not rounded."""
    text = io.StringIO()
    heads = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    writer = csv.DictWriter(text, list(heads), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        plain = {name: json.dumps(v) if isinstance(v, list) else v for name, v in row.items()}
        writer.writerow(plain)
    return text.getvalue()


def json_text(rows: Rows, _columns: Sequence[str] = ()) -> str:
    """A list of objects; None is null."""
    return json.dumps(rows, indent=1) + "\n"


# The terminal, by rich.

_ANY_WIDTH = 10_000  # of what goes to a file or a pipe: as wide as it needs
_FRAME, _EDGE = 3, 1  # characters around a column, and at the end of a line
_LEAST_LABEL = 12  # characters to which a label is folded where the values need the room
_MANY = 1_000  # rows: more are lines without a frame, as rich takes seconds for ten thousand
_CLOSE = "~"  # behind a value that cannot be told from the best


def terminal(sheets: Sequence[Sheet], to_file: bool = False) -> str:
    """Draw sheets one below the other, each with its notes, as wide as the terminal, if any.

    If a table is too wide, its sets are one below the other, the average first. No number is cut,
    however narrow the terminal is; sentences are wrapped.
    """
    from rich.text import Text

    from zsntta_cli.progress import columns, console

    screen = console(plain=to_file)
    usual = screen.width  # 80 where there is no terminal
    is_bound = screen.is_terminal or (columns() and not to_file)
    width = usual if is_bound else _ANY_WIDTH
    with screen.capture() as captured:
        for sheet in sheets:
            for line in sheet.above:
                screen.print(Text(printable(line)))
            if sheet.title:
                screen.print(Text(printable(sheet.title), "italic"))
            if len(sheet.rows) > _MANY:
                screen.out(_lines(sheet), highlight=False)
                continue
            for table, needed in _side_by_side(sheet, width):
                screen.width = needed or usual
                screen.print(table)
            screen.width = width
            for note in sheet.notes_on(f"A value with {_CLOSE}"):
                screen.print(Text(printable(note)))
    return captured.get()


def _lines(sheet: Sheet) -> str:
    """The rows of a long sheet as lines, each column as wide as its widest text."""
    columns = []
    for i, texts in enumerate(zip(sheet.whole_heads, *sheet.rows, strict=True)):
        pad = str.ljust if i < len(sheet.heads) else str.rjust
        width = max(map(len, texts))
        columns.append([pad(text, width) for text in texts])
    return "\n".join(printable("  ".join(line)) for line in zip(*columns, strict=True))


def _side_by_side(sheet: Sheet, room: int) -> "Iterator[tuple[Table, int]]":
    """Tables of the columns that fit beside each other, and the width that each needs.

    A list, which has no values, needs no width of its own.
    """
    from rich.table import Table
    from rich.text import Text

    columns = list(zip(sheet.inner_heads, *sheet.rows, strict=True))
    labels, for_values, least = [], room - _EDGE, _EDGE  # of the room: for values, and for labels
    for texts in columns[: len(sheet.heads)]:
        labels.append([*map(Text, map(partial(printable, kept="\n"), texts))])
        length = max(map(len, texts))
        for_values -= length + _FRAME
        least += min(length, _LEAST_LABEL) + _FRAME
    values, widths = {}, {}  # the lines of each set, its heads first
    for name, place in sheet.places.items():
        values[name] = [*map(Text(" ").join, zip(*map(_aligned, columns[place]), strict=True))]
        width = max(len(name), len(values[name][0]))
        for line in values[name]:  # rich would cut the blanks at their ends, aligned to the right
            line.pad_left(width - len(line))
        widths[name] = width + _FRAME
    has_heads = any(map(any, sheet.columns.values()))
    for names in sheet.side_by_side(widths, for_values):
        table = Table(show_header=any(sheet.heads) or bool(names))
        for i, (head, *_) in enumerate(labels):
            is_whole = not names and i == 0  # the name in a list
            table.add_column(head, overflow="fold", no_wrap=is_whole)
        for name in names:
            above = Text(printable(name).rjust(widths[name] - _FRAME))
            parts = [above] * any(names) + [values[name][0]] * has_heads
            table.add_column(Text("\n").join(parts), no_wrap=True)
        _, *rows = zip(*labels, *map(values.__getitem__, names), strict=True)
        for i, row in enumerate(rows):
            if i in sheet.rules:
                table.add_section()
            table.add_row(*row)
        yield table, max(room, least + sum(map(widths.__getitem__, names))) if names else 0


def _aligned(texts: Sequence[str]) -> "list[Text]":
    """A head and values of one width, so that what stands side by side is as wide everywhere.

    A value has its mark behind it, or a blank where others have one: the digits stay aligned.
    """
    from rich.text import Text

    blank = "" if {Marked, Close}.isdisjoint(map(type, texts)) else " "
    signs: dict[type, str] = {Close: _CLOSE, Marked: ""}
    marked, lines = list[str](), []
    for text in texts:
        marked.append(text + signs.get(type(text), blank))
    width = max(map(len, marked))
    for text, whole in zip(texts, marked, strict=True):
        style = "bold" if isinstance(text, Best) else ""
        lines.append(Text(" " * (width - len(whole))).append(whole, style))
    return lines


# Markdown.


def markdown(sheets: Sequence[Sheet]) -> str:
    """Tables in GitHub's Markdown."""
    return "\n".join(map(_markdown, sheets))


def _markdown(sheet: Sheet) -> str:
    heads = sheet.whole_heads
    rule = ["---"] * len(sheet.heads) + ["---:"] * (len(heads) - len(sheet.heads))
    above = [*sheet.above, *[f"**{_in_markdown(sheet.title)}**"] * bool(sheet.title)]
    lines = "".join(
        f"| {' | '.join(map(_in_markdown, line))} |\n" for line in (heads, rule, *sheet.rows)
    )
    notes = "".join(f"\n{_in_markdown(note)}\n" for note in sheet.notes_on("A value in italics"))
    return "".join(f"{line}\n\n" for line in above) + lines + notes


def _in_markdown(text: str) -> str:
    around = {Best: "**", Close: "_"}.get(type(text), "")
    plain = printable(text, kept="\n").replace("|", r"\|").replace("\n", "<br>")
    return f"{around}{plain}{around}"


# HTML, for a file of tables and for the page of `report`.

_STYLE = (
    "body{font:15px sans-serif}table{border-collapse:collapse;margin:1em 0}caption{text-align:left}"
    "td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid #ddd}th[scope=row],.t"
    "{text-align:left;font-weight:400}.scroll{overflow-x:auto}"
)


def html(sheets: Sequence[Sheet]) -> str:
    """A page of tables; the best of a column is bold, values close to it are underlined."""
    title = _in_html([*sheets[0].above, sheets[0].title][0]) if sheets else ""
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en">{head}\n' + "\n".join(map(html_table, sheets))


def html_table(sheet: Sheet) -> str:
    """A table and its notes, as a part of a page. Cells and rows need no end tags, HTML says so."""
    title, labels = _in_html(sheet.title), len(sheet.heads)
    has_names = any(sheet.columns)
    head = _each(f'<th scope="col"{" rowspan=2" * has_names}>{{}}', sheet.heads)
    for name, heads in sheet.columns.items() if has_names else ():
        head += f'<th scope="colgroup" colspan="{len(heads)}">{_in_html(name)}'
    head += "\n<tr>" * has_names
    for heads in sheet.columns.values():
        head += _each('<th scope="col" class="n">{}', heads)
    body = ""
    for i, (first, *texts) in enumerate(sheet.rows):
        body += f'<tr{" class=r" * (i in sheet.rules)}><th scope="row">{_in_html(first)}'
        body += _each('<td class="t">{}', texts[: labels - 1])
        body += _each("<td>{}", texts[labels - 1 :]) + "\n"
    above = _each("<p>{}</p>\n", sheet.above)
    notes = _each("<p>{}</p>\n", sheet.notes_on(UNDERLINED, BOLD))
    below = f'<div class="notes">{notes}</div>\n' * bool(notes)
    return (  # what scrolls can be reached by the keyboard, and is named as its table is
        f'{above}<div class="scroll" role="group" tabindex="0" aria-label="{title}"><table>'
        f"<caption>{title}</caption>\n<thead><tr>{head}\n</thead>"
        f"<tbody>{body}</tbody></table></div>\n{below}"
    )


def _each(element: str, texts: Iterable[str]) -> str:
    """An element with each text."""
    return "".join(map(element.format, map(_in_html, texts)))


def _in_html(text: str) -> str:
    plain = escape(printable(text, kept="\n")).replace("\n", "<br>")
    if isinstance(text, Marked):
        return f"{plain[:-1]}<sup>{plain[-1]}</sup>"
    tag = {Best: "b", Close: "u"}.get(type(text))
    return f"<{tag}>{plain}</{tag}>" if tag else plain


class Form(NamedTuple):
    """One entry of FORMS."""

    write: Callable[..., str]
    of_rows: bool = False  # it takes rows of values, not sheets


TABLE = "table"  # drawn for the terminal, if there is one
FORMS = {
    TABLE: Form(terminal),
    "markdown": Form(markdown),
    "latex": Form(latex),
    "html": Form(html),
    "csv": Form(csv_text, of_rows=True),
    "json": Form(json_text, of_rows=True),
}
# By a file's ending; of figures: what is drawn by matplotlib, and the numbers of the points.
ENDINGS = {
    ".txt": TABLE, ".md": "markdown", ".tex": "latex", ".html": "html", ".csv": "csv",
    ".json": "json",
}  # fmt: skip
FIGURE_ENDINGS = {".pdf": "pdf", ".svg": "svg", ".png": "png", ".csv": "csv"}
