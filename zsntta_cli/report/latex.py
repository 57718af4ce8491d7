"""Tables in LaTeX, by booktabs, each no wider than the column that it stands in."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from zsntta_cli.errors import printable
from zsntta_cli.report.sheet import BOLD, UNDERLINED, Best, Close, Marked, Sheet, SheetRow

_SPECIAL = {
    "±": r"$\pm$", "×": r"$\times$", "✓": r"$\checkmark$", "µ": r"$\mu$", "−": "$-$",
    "†": r"\dag{}", "°": r"$^\circ$", "…": r"\ldots{}", "≥": r"$\ge$", "≤": r"$\le$",
    "Σ": r"$\Sigma$", "σ": r"$\sigma$", "α": r"$\alpha$", "β": r"$\beta$", "λ": r"$\lambda$",
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
}  # fmt: skip
_FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
_LETTER, _GAP, _WIDEST = 4.3, 6, 480  # points: of \footnotesize, between columns, of a table
_LONG_TEXT = 32  # characters from which a column of texts has lines
_MOST_LINES = 45  # of one tabular, so that it fits a page


def latex(sheets: Sequence[Sheet]) -> str:
    """Tables with booktabs' rules, each no wider than the column that it stands in.

    A column's best is bold, values close to it are underlined; a note below says so. A table with a
    caption or a label is a float.
    """
    return "\n".join(map(_latex, sheets))


def _latex(sheet: Sheet) -> str:
    sheet = _narrowed(sheet)
    texts = [text for row in sheet.plain() for text in row]
    packages = ["booktabs", "graphicx", *["amssymb"] * any("✓" in text for text in texts)]
    packages += ["array"] * any("p{" in kind for kind in _kinds(sheet))
    titles = [f"% {printable(line)}" for line in (*sheet.above, sheet.title) if line]
    made_by = [f"% Made by: {printable(sheet.command)}"] if sheet.command else []
    caption = [rf"\caption{{{tex(sheet.caption)}}}"] if sheet.caption else []
    label = [rf"\label{{{sheet.reference}}}"] if sheet.reference else []
    environment = "table" if caption or label else "center"
    notes = " ".join(map(tex, sheet.notes_on(UNDERLINED, BOLD)))
    below = [rf"\par\smallskip{{\scriptsize\raggedright {notes}\par}}"] * bool(notes)
    return "\n".join([
        *titles, rf"% Needs \usepackage{{{','.join(packages)}}}", *made_by,
        rf"\begin{{{environment}}}", *[r"\centering"] * (environment == "table"), *caption, *label,
        r"\footnotesize\setlength{\tabcolsep}{3pt}", *_tabulars(sheet), *below,
        rf"\end{{{environment}}}",
    ]) + "\n"  # fmt: skip


def _narrowed(sheet: Sheet) -> Sheet:
    """A sheet with rows for each metric, where side by side the metrics would be too small."""
    several = {heads for heads in sheet.columns.values() if len(heads) > 1}
    lengths = [max(map(len, texts)) for texts in zip(*sheet.plain(), strict=True)]
    points = _LETTER * sum(lengths) + _GAP * len(lengths)
    if len(several) != 1 or len(set(sheet.columns.values())) > 1 or points <= _WIDEST:
        return sheet
    rows = [
        SheetRow(
            (head, *row.labels),
            {name: [sheet.values(row, name)[place]] for name in sheet.columns},
            row is sheet.rows[0] and place > 0,
        )
        for place, head in enumerate(several.pop())
        for row in sheet.rows
    ]
    columns = dict.fromkeys(sheet.columns, ("",))
    return replace(sheet, heads=("Metric", *sheet.heads), columns=columns, rows=rows)


def _tabulars(sheet: Sheet) -> Iterator[str]:
    """The rows, as many as a page has room for in each tabular, under the same heads."""
    columns = list(sheet.columns.values())
    ends = [len(sheet.heads) + sum(map(len, columns[: i + 1])) for i in range(len(columns))]
    metrics = [_tex_head(head) for heads in columns for head in heads]
    labels, heads = [tex(head) for head in sheet.heads], []
    if any(metrics) and any(sheet.columns):
        over = [
            rf"\multicolumn{{{len(of)}}}{{c}}{{{tex(name)}}}" for name, of in sheet.columns.items()
        ]
        heads += [" & ".join([*[""] * len(labels), *over]) + r" \\"]
        heads += ["".join(
            rf"\cmidrule(lr){{{end - len(of) + 1}-{end}}}"
            for end, of in zip(ends, columns, strict=True)
        )]  # fmt: skip
    names = metrics if any(metrics) else [tex(name) for name in sheet.columns]
    if any((*labels, *names)):
        heads += [" & ".join([*labels, *names]) + r" \\", r"\midrule"]
    for number, rows in enumerate(_pages(sheet)):
        yield from [r"\par\medskip"] * bool(number)
        yield _FIT
        yield from (rf"\begin{{tabular}}{{@{{}}{''.join(_kinds(sheet))}@{{}}}}", r"\toprule")
        yield from heads
        for row, texts in rows:
            yield from [r"\midrule"] * row.has_rule_above
            yield " & ".join(map(_tex_cell, texts)) + r" \\"
        yield from (r"\bottomrule", r"\end{tabular}}")


def _pages(sheet: Sheet) -> list[list[tuple[SheetRow, list[str]]]]:
    """The rows in parts that a page has room for; a long text counts by its lines."""
    pages: list[list[tuple[SheetRow, list[str]]]] = [[]]
    taken, of_lines = 0, [kind.startswith(">") for kind in _kinds(sheet)]
    letters = _LONG_TEXT // max(1, sum(of_lines))  # of a line in a narrow column
    for row, texts in zip(sheet.rows, sheet.plain(), strict=True):
        lengths = [len(t) for t, is_long in zip(texts, of_lines, strict=True) if is_long]
        lines = math.ceil(max(lengths, default=1) / letters)
        if pages[-1] and taken + lines > _MOST_LINES:
            pages.append([])
            taken = 0
        pages[-1].append((row, texts))
        taken += lines
    return pages


def _kinds(sheet: Sheet) -> list[str]:
    """How each column is set: numbers to the right, words in the middle, long texts in lines."""
    longest = [
        max(map(len, texts))
        for texts in zip(sheet.heads, *(row.labels for row in sheet.rows), strict=True)
    ]
    room = f"{0.7 / max(1, sum(n > _LONG_TEXT for n in longest)):.2f}"
    lines = rf">{{\raggedright\arraybackslash}}p{{{room}\linewidth}}"
    labels = [lines if n > _LONG_TEXT else "l" for n in longest]
    values = [
        text for row in sheet.rows for name in sheet.columns for text in sheet.values(row, name)
    ]
    is_words = any(text and not re.match(r"[-+\d]", text) for text in values)
    return labels + ["c" if is_words else "r"] * sum(map(len, sheet.columns.values()))


def _tex_cell(text: str) -> str:
    if isinstance(text, Marked):
        return rf"{_tex_value(text[:-1])}$^{{{_tex_mark(text[-1])}}}$"
    if "\n" in text:
        lines = r" \\ ".join(map(tex, text.split("\n")))
        return rf"\begin{{tabular}}[t]{{@{{}}l@{{}}}}{lines}\end{{tabular}}"
    if text.startswith("  "):
        return rf"\quad {tex(text.lstrip())}"
    if isinstance(text, Best):
        return rf"\textbf{{{_tex_value(text)}}}"
    if isinstance(text, Close):
        return rf"\underline{{{_tex_value(text)}}}"
    return _tex_head(text) if re.fullmatch(r"Acc_[SNH]", text) else _tex_value(text)


def _tex_mark(mark: str) -> str:
    return {"°": r"\circ", "†": r"\dagger"}.get(mark, tex(mark))


def _tex_value(text: str) -> str:
    """A value with its deviation in small digits."""
    mean, sign, deviation = text.partition("±")
    return tex(mean) + rf"{{\scriptsize$\pm${tex(deviation)}}}" * bool(sign)


def _tex_head(head: str) -> str:
    """Write Acc_S in mathematics as the paper does, which needs no package."""
    parts = re.fullmatch(r"([A-Za-z]+)_([A-Z])", head)
    return rf"$\mathrm{{{parts[1]}}}_\mathrm{{{parts[2]}}}$" if parts else tex(head)


def tex(text: str) -> str:
    """A text in LaTeX that prints as it is and runs nothing."""
    return "".join(_SPECIAL.get(character, character) for character in printable(text))
