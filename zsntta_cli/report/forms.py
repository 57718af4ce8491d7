"""The forms of results: one table for people in four, rows of values for programs in two.

Each form is a function and a line of FORMS; every command that writes results takes its forms from
here. No NumPy.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any

from zsntta_cli.errors import printable
from zsntta_cli.report.latex import latex
from zsntta_cli.report.sheet import AVERAGE, BOLD, UNDERLINED, Best, Close, Marked, Sheet

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

Rows = Sequence[dict[str, Any]]


def draw(sheets: Iterable[Sheet], form: str, to_file: bool = False) -> str:
    """Draw sheets as a text; `to_file`: not for a terminal, so as wide as necessary."""
    draw_sheets, parts = FORMS[form].write, list(sheets)
    return draw_sheets(parts, to_file=to_file) if form == TABLE else draw_sheets(parts)


def in_form(
    form: str,
    sheets: Iterable[Sheet],
    rows: Iterable[dict[str, Any]],
    to_file: bool = False,
    columns: Sequence[str] = (),
) -> str:
    """A result in any form: its sheets for people, or its rows for programs; the others are unread.

    `columns` names those of a CSV in case there are no rows.
    """
    if FORMS[form].of_rows:
        return FORMS[form].write(list(rows), columns)
    return draw(sheets, form, to_file)


# Rows of values, for programs.


def csv_text(rows: Rows, columns: Sequence[str] = ()) -> str:
    """A head and one line per row; None is empty, numbers are not rounded."""
    heads = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    text = io.StringIO()
    writer = csv.DictWriter(text, heads, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def json_text(rows: Rows, _columns: Sequence[str] = ()) -> str:
    """A list of objects; None is null."""
    return json.dumps(list(rows), indent=1) + "\n"


# The terminal, by rich.

_ANY_WIDTH = 10_000  # of what goes to a file or a pipe: as wide as it needs
_FRAME, _EDGE = 3, 1  # characters around a column, and at the end of a line
_LEAST_LABEL = 12  # characters to which a label is folded where the values need the room
_MANY = 1_000  # rows: more are lines without a frame, as rich takes seconds for ten thousand
_CLOSE = "~"  # behind a value that cannot be told from the best


def terminal(sheets: Sequence[Sheet], to_file: bool = False) -> str:
    """Draw sheets one below the other, each with its notes, as wide as the terminal, if any.

    Where a table is too wide, its sets stand below each other, the average first. No number is cut,
    however narrow the terminal is; sentences are folded.
    """
    from rich.text import Text

    from zsntta_cli.progress import columns, console

    screen = console(plain=to_file)
    usual = screen.width  # 80 where there is no terminal
    is_bound = screen.is_terminal or (columns() and not to_file)
    width = usual if is_bound else _ANY_WIDTH
    with screen.capture() as captured:
        for sheet in sheets:
            for line in (*sheet.above, *filter(None, [sheet.title])):
                style = "italic" if line is sheet.title else ""
                screen.print(Text(printable(line), style))
            if len(sheet.rows) > _MANY:
                screen.out(_columns(sheet), highlight=False)
                continue
            cells = {name: _cells(sheet, name) for name in sheet.columns}
            widths = {name: max(len(name), *map(len, of)) + _FRAME for name, of in cells.items()}
            labels = [
                max(map(len, texts)) + _FRAME
                for texts in zip(sheet.heads, *(row.labels for row in sheet.rows), strict=True)
            ]
            least = sum(min(length, _LEAST_LABEL + _FRAME) for length in labels) + _EDGE
            for names in _blocks(widths, width - sum(labels) - _EDGE):
                needed = max(width, least + sum(widths[name] for name in names))
                screen.width = needed if names else usual
                screen.print(_rich(sheet, {name: cells[name] for name in names}))
            screen.width = width
            for note in sheet.notes_on(f"A value with {_CLOSE}"):
                screen.print(Text(printable(note)))
    return captured.get()


def _columns(sheet: Sheet) -> str:
    """The rows of a long sheet as lines, each column as wide as its widest text."""
    heads = [f"{name} {head}".strip() for name, of in sheet.columns.items() for head in of]
    rows = [[*sheet.heads, *heads], *sheet.plain()]
    columns = []
    for i, texts in enumerate(zip(*rows, strict=True)):
        width = max(map(len, texts))
        columns.append([t.rjust(width) if i >= len(sheet.heads) else t.ljust(width) for t in texts])
    return "\n".join(printable("  ".join(line)) for line in zip(*columns, strict=True))


def _blocks(widths: Mapping[str, int], room: int) -> list[list[str]]:
    """The columns that stand side by side: all if they fit, else the average before the others."""
    if sum(widths.values()) <= room:
        return [list(widths)]
    blocks: list[list[str]] = [[]]
    for name in sorted(widths, key=lambda name: name != AVERAGE):
        if blocks[-1] and sum(widths[n] for n in (*blocks[-1], name)) > room:
            blocks.append([])
        blocks[-1].append(name)
    return blocks


def _rich(sheet: Sheet, cells: Mapping[str, "Sequence[Text]"]) -> "Table":
    """The table of some columns, by what stands in their lines."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=any(sheet.heads) or bool(cells))
    for i, head in enumerate(sheet.heads):
        is_whole = not cells and i == 0  # the name in a list
        table.add_column(Text(printable(head)), overflow="fold", no_wrap=is_whole)
    has_heads = any(of[0].plain.strip() for of in cells.values())
    for name, (heads, *_) in cells.items():
        parts = [Text(printable(name))] * any(cells) + [heads] * has_heads
        table.add_column(Text("\n").join(parts), justify="right", no_wrap=True)
    for i, row in enumerate(sheet.rows, 1):
        if row.has_rule_above:
            table.add_section()
        labels = (Text(printable(label, kept="\n")) for label in row.labels)
        table.add_row(*labels, *(column[i] for column in cells.values()))
    return table


def _cells(sheet: Sheet, column: str) -> "list[Text]":
    """The lines of a column, its heads first: what stands side by side is as wide everywhere.

    A value has its mark behind it, or a blank where others have one: the digits stay aligned.
    """
    from rich.text import Text

    rows = [sheet.columns[column], *(sheet.values(row, column) for row in sheet.rows)]
    lines: list[list[Text]] = [[] for _ in rows]
    for values in zip(*rows, strict=True):
        has_marks = any(isinstance(value, Marked | Close) for value in values)
        texts = []
        for value in values:
            mark = _CLOSE if isinstance(value, Close) else " "
            texts.append(value + mark * (has_marks and not isinstance(value, Marked)))
        width = max(map(len, texts))
        for line, value, text in zip(lines, values, texts, strict=True):
            line.append(Text(text.rjust(width), "bold" if isinstance(value, Best) else ""))
    return [Text(" ").join(line) for line in lines]


# Markdown


def markdown(sheets: Sequence[Sheet]) -> str:
    """Tables in GitHub's Markdown."""
    return "\n".join(map(_markdown, sheets))


def _markdown(sheet: Sheet) -> str:
    heads = [*sheet.heads, *(f"{c} {m}".strip() for c, ms in sheet.columns.items() for m in ms)]
    rule = ["---"] * len(sheet.heads) + ["---:"] * (len(heads) - len(sheet.heads))
    rows = [[_markdown_cell(text) for text in row] for row in sheet.plain()]
    lines = [[_markdown_text(head) for head in heads], rule, *rows]
    above = "".join(f"{_markdown_text(line)}\n\n" for line in sheet.above)
    title = f"**{_markdown_text(sheet.title)}**\n\n" if sheet.title else ""
    below = sheet.notes_on("A value in italics")
    notes = "".join(f"\n{_markdown_text(note)}\n" for note in below)
    return above + title + "".join(f"| {' | '.join(line)} |\n" for line in lines) + notes


def _markdown_cell(text: str) -> str:
    if isinstance(text, Best):
        return f"**{text}**"
    return f"_{text}_" if isinstance(text, Close) else _markdown_text(text)


def _markdown_text(text: str) -> str:
    return printable(text, kept="\n").replace("|", r"\|").replace("\n", "<br>")


# HTML, for a file of tables and for the page of `report`.

_STYLE = (
    "body{font:15px sans-serif}table{border-collapse:collapse;margin:1em 0}caption{text-align:left}"
    "td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid #ddd}th[scope=row],.t"
    "{text-align:left;font-weight:400}.scroll{overflow-x:auto}"
)


def html(sheets: Sequence[Sheet]) -> str:
    """A page of tables; the best of a column is bold, values close to it are underlined."""
    title = _escaped([*sheets[0].above, sheets[0].title][0]) if sheets else ""
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en">{head}\n' + "\n".join(map(html_table, sheets))


def html_table(sheet: Sheet) -> str:
    """A table and its notes, as a part of a page. Cells and rows need no end tags, HTML says so."""
    has_names = any(sheet.columns)
    rows = ' rowspan="2"' * has_names
    first = _each(f'<th scope="col"{rows}>{{}}', sheet.heads)
    over = "".join(
        f'<th scope="colgroup" colspan="{len(heads)}">{_escaped(name)}'
        for name, heads in sheet.columns.items()
    )
    second = _each('<th scope="col" class="n">{}', chain.from_iterable(sheet.columns.values()))
    head = f"<tr>{first}{over}\n<tr>{second}" if has_names else f"<tr>{first}{second}"
    above = _each("<p>{}</p>\n", sheet.above)
    notes = _each("<p>{}</p>\n", sheet.notes_on(UNDERLINED, BOLD))
    body = "".join(
        f'<tr{" class=r" * row.has_rule_above}><th scope="row">{_html_text(texts[0])}'
        + _each('<td class="t">{}', texts[1 : len(sheet.heads)], _html_text)
        + _each("<td>{}", texts[len(sheet.heads) :], _html_text)
        + "\n"
        for row, texts in zip(sheet.rows, sheet.plain(), strict=True)
    )
    title = _escaped(sheet.title)
    below = f'<div class="notes">{notes}</div>\n' * bool(notes)
    return (  # what scrolls can be reached by the keyboard, and is named as its table is
        f'{above}<div class="scroll" role="group" tabindex="0" aria-label="{title}"><table>'
        f"<caption>{title}</caption>\n<thead>{head}\n</thead>"
        f"<tbody>{body}</tbody></table></div>\n{below}"
    )


def _html_text(text: str) -> str:
    if isinstance(text, Marked):
        return f"{_escaped(text[:-1])}<sup>{_escaped(text[-1])}</sup>"
    for kind, tag in ((Best, "b"), (Close, "u")):
        if isinstance(text, kind):
            return f"<{tag}>{_escaped(text)}</{tag}>"
    return "<br>".join(map(_escaped, text.split("\n")))


def _escaped(text: str) -> str:
    return escape(printable(text))


def _each(element: str, texts: Iterable[str], in_html: Callable[[str], str] = _escaped) -> str:
    """An element with each text."""
    return "".join(map(element.format, map(in_html, texts)))


@dataclass(frozen=True)
class Form:
    """One entry of FORMS."""

    ending: str  # of a file in it
    write: Callable[..., str]
    of_rows: bool = False  # it takes rows of values, not sheets


TABLE = "table"  # drawn for the terminal, if there is one
FORMS = {
    TABLE: Form(".txt", terminal),
    "markdown": Form(".md", markdown),
    "latex": Form(".tex", latex),
    "html": Form(".html", html),
    "csv": Form(".csv", csv_text, of_rows=True),
    "json": Form(".json", json_text, of_rows=True),
}
# Of figures: what is drawn by matplotlib, and the numbers of the points.
FIGURE_ENDINGS = {".pdf": "pdf", ".svg": "svg", ".png": "png", ".csv": "csv"}
ENDINGS = {form.ending: name for name, form in FORMS.items()}  # by a file's ending
