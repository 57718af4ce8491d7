"""Draw sheets as Markdown and HTML."""

from collections.abc import Sequence
from html import escape

from zsntta_cli.errors import printable
from zsntta_cli.report.sheet import Best, Close, Marked, Sheet

_UNDERLINED = "An underlined value"

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
    return printable(text).replace("|", r"\|")


# HTML


_STYLE = (
    "body{font:15px sans-serif}table{border-collapse:collapse;margin:1em 0}caption{text-align:left}"
    "td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid #ddd}"
)


def html(sheets: Sequence[Sheet]) -> str:
    """A page of tables; the best of a column is bold, values close to it are underlined."""
    title = _escaped([*sheets[0].above, sheets[0].title][0]) if sheets else ""
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en">{head}\n' + "\n".join(map(html_table, sheets))


def html_table(sheet: Sheet) -> str:
    """A table and its notes, as a part of a page."""
    names = "".join(f'<th rowspan="2" scope="col">{_escaped(head)}' for head in sheet.heads)
    first = "".join(
        f'<th colspan="{len(heads)}" scope="colgroup">{_escaped(name)}'
        for name, heads in sheet.columns.items()
    )
    second = "".join(
        f'<th scope="col">{_escaped(head)}' for heads in sheet.columns.values() for head in heads
    )
    rows = "".join(f"<tr>{''.join(map(_html_cell, row))}\n" for row in sheet.plain())
    notes = "".join(f"<p>{_escaped(note)}</p>\n" for note in sheet.notes_on(_UNDERLINED))
    head = f"<thead><tr>{names}{first}\n<tr>{second}\n</thead>"
    above = "".join(f"<p>{_escaped(line)}</p>\n" for line in sheet.above)
    caption = f"<caption>{_escaped(sheet.title)}</caption>"
    return f"{above}<table>{caption}\n{head}<tbody>{rows}</tbody></table>\n{notes}"


def _html_cell(text: str) -> str:
    if isinstance(text, Marked):
        return f"<td>{_escaped(text[:-1])}<sup>{_escaped(text[-1])}</sup>"
    if isinstance(text, Best):
        return f"<td><b>{_escaped(text)}</b>"
    return f"<td><u>{_escaped(text)}</u>" if isinstance(text, Close) else f"<td>{_escaped(text)}"


def _escaped(text: str) -> str:
    return escape(printable(text))
