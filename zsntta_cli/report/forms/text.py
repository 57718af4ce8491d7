"""Draw sheets as Markdown, LaTeX and HTML."""

import re
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


# LaTeX

_PACKAGES = r"% Needs \usepackage{booktabs}"
_SYMBOLS = {"±": r" $\pm$ ", "×": r"$\times$", "✓": r"$\checkmark$", "µ": r"$\mu$", "−": "$-$"}
_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{character: "\\" + character for character in "&%$#_{}"}, **_SYMBOLS,
}  # fmt: skip


def latex(sheets: Sequence[Sheet]) -> str:
    """Tables with booktabs' rules; a column's best is bold, values close to it are underlined."""
    return "\n".join(map(_latex, sheets))


def _latex(sheet: Sheet) -> str:
    has_check = any("✓" in text for row in sheet.plain() for text in row)
    packages = _PACKAGES + r" and \usepackage{amssymb}" * has_check
    made_by = [f"% Made by: {_comment(sheet.command)}"] if sheet.command else []
    notes = [f"% {_comment(note)}" for note in sheet.notes_on(_UNDERLINED)]
    titles = [f"% {_comment(line)}" for line in (*sheet.above, sheet.title) if line]
    lines = [*titles, packages, *made_by, *notes, *_floating(sheet)]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    """A text as one line of a comment, so that LaTeX runs nothing of it, whatever it holds."""
    return printable(text)


def _floating(sheet: Sheet) -> list[str]:
    """The table, within a float if it has a caption or a label."""
    if not (sheet.caption or sheet.reference):
        return _tabular(sheet)
    caption = [rf"\caption{{{tex(sheet.caption)}}}"] if sheet.caption else []
    reference = [rf"\label{{{sheet.reference}}}"] if sheet.reference else []
    begin = [r"\begin{table}", r"\centering", *caption, *reference]
    return [*begin, *_tabular(sheet), r"\end{table}"]


def _tabular(sheet: Sheet) -> list[str]:
    before, spans = len(sheet.heads), [len(heads) for heads in sheet.columns.values()]
    names = [
        rf"\multicolumn{{{n}}}{{c}}{{{tex(c)}}}" for c, n in zip(sheet.columns, spans, strict=True)
    ]
    ends = [before + sum(spans[: i + 1]) for i in range(len(spans))]
    rules = "".join(
        rf"\cmidrule(lr){{{end - n + 1}-{end}}}" for end, n in zip(ends, spans, strict=True)
    )
    heads = [_tex_metric(head) for heads in sheet.columns.values() for head in heads]
    body = []
    for row, texts in zip(sheet.rows, sheet.plain(), strict=True):
        body += [r"\midrule"] * row.has_rule_above
        body.append(" & ".join(map(_tex_cell, texts)) + r" \\")
    first = [" & ".join([*[""] * before, *names]) + r" \\", rules] if any(sheet.columns) else []
    return [
        rf"\begin{{tabular}}{{{'l' * before}*{{{sum(spans)}}}{{c}}}}",
        r"\toprule",
        *first,
        " & ".join([*map(tex, sheet.heads), *heads]) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]


def tex(text: str) -> str:
    """A text, escaped for LaTeX."""
    return "".join(_SPECIAL.get(character, character) for character in printable(text))


def _tex_cell(text: str) -> str:
    if isinstance(text, Marked):
        return rf"{tex(text[:-1])}$^{{{tex(text[-1])}}}$"
    if text.startswith("  "):
        return rf"\quad {tex(text.lstrip())}"
    if isinstance(text, Best):
        return rf"\textbf{{{tex(text)}}}"
    return rf"\underline{{{tex(text)}}}" if isinstance(text, Close) else tex(text)


def _tex_metric(head: str) -> str:
    """Write Acc_S in mathematics as the paper does, which needs no package."""
    parts = re.fullmatch(r"([A-Za-z]+)_([A-Z])", head)
    return rf"$\mathrm{{{parts[1]}}}_\mathrm{{{parts[2]}}}$" if parts else tex(head)


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
