"""Tables in LaTeX, with booktabs, each no wider than its text column."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from zsntta_cli.errors import printable
from zsntta_cli.report.sheet import BOLD, UNDERLINED, Best, Close, Marked, Sheet

_SPECIAL = {
    "±": r"$\pm$", "×": r"$\times$", "✓": r"$\checkmark$", "µ": r"$\mu$", "−": "$-$",
    "†": r"\dag{}", "°": r"$^\circ$", "…": r"\ldots{}", "≥": r"$\ge$", "≤": r"$\le$",
    "Σ": r"$\Sigma$", "σ": r"$\sigma$", "α": r"$\alpha$", "β": r"$\beta$", "λ": r"$\lambda$",
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
}  # fmt: skip
_FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
_WIDEST = 110  # letters of a table; a wider one would be too small, so its sets stand below others
_LONGEST = 40  # letters of a label's line
_MOST_LINES = 45  # of one tabular, so that it fits a page


def latex(sheets: Sequence[Sheet]) -> str:
    """Tables with booktabs' rules, each no wider than its text column.

    A column's best is bold, and values close to it are underlined; a note below says so. A table
    with a caption or a label is a float. A table that is too wide or too high has several tabulars.
    """
    return "\n".join(map(_latex, sheets))


def _latex(sheet: Sheet) -> str:
    packages = ["booktabs", "graphicx"]
    packages += ["amssymb"] * any("✓" in text for row in sheet.rows for text in row)
    lines = [f"% {printable(line)}" for line in (*sheet.above, sheet.title) if line]
    lines.append(rf"% Needs \usepackage{{{','.join(packages)}}}")
    lines += [f"% Made by: {printable(sheet.command)}"] if sheet.command else []
    is_float = bool(sheet.caption or sheet.reference)
    lines += [r"\begin{table}", r"\centering"] if is_float else [r"\begin{center}"]
    lines += [rf"\caption{{{tex(sheet.caption)}}}"] if sheet.caption else []
    lines += [rf"\label{{{sheet.reference}}}"] if sheet.reference else []
    lines.append(r"\footnotesize\setlength{\tabcolsep}{3pt}")
    lines.append("\n\\par\\medskip\n".join(_tabulars(sheet)))
    notes = " ".join(map(tex, sheet.notes_on(UNDERLINED, BOLD)))
    lines += [rf"\par\smallskip{{\scriptsize\raggedright {notes}\par}}"] if notes else []
    return "\n".join([*lines, r"\end{table}" if is_float else r"\end{center}"]) + "\n"


def _tabulars(sheet: Sheet) -> Iterator[str]:
    """The tabulars of a sheet: what fits beside each other, and as many rows as a page has."""
    count, places = len(sheet.heads), sheet.places
    rows = [[*map(_folded, row[:count]), *row[count:]] for row in sheet.rows]
    letters = [
        2 + max(len(line) for text in texts for line in text.split("\n"))
        for texts in zip(sheet.inner_heads, *rows, strict=True)
    ]
    widths = {name: sum(letters[place]) for name, place in places.items()}
    for names in sheet.side_by_side(widths, _WIDEST - sum(letters[:count])):
        above = _heads(sheet, names)
        kinds = "l" * count + "r" * sum(len(sheet.columns[name]) for name in names)
        tabular = [_FIT, rf"\begin{{tabular}}{{@{{}}{kinds}@{{}}}}", r"\toprule", *above]
        lines, height = [*tabular], 0
        for i, row in enumerate(rows):
            needed = 1 + max(text.count("\n") for text in row[:count])
            if height and height + needed > _MOST_LINES:
                yield "\n".join([*lines, r"\bottomrule", r"\end{tabular}}"])
                lines, height = [*tabular], 0
            lines += [r"\midrule"] * (i in sheet.rules and height > 0)
            values = [text for name in names for text in row[places[name]]]
            lines.append(" & ".join(map(_cell, [*row[:count], *values])) + r" \\")
            height += needed
        yield "\n".join([*lines, r"\bottomrule", r"\end{tabular}}"])


def _folded(label: str) -> str:
    return "\n".join(textwrap.fill(line, _LONGEST) or line for line in label.split("\n"))


def _heads(sheet: Sheet, names: Sequence[str]) -> list[str]:
    """The lines of heads: the names of columns, and below them those of their values."""
    over, rules, end = [""] * len(sheet.heads), "", len(sheet.heads)
    for name in names:
        span = len(sheet.columns[name])
        over.append(rf"\multicolumn{{{span}}}{{c}}{{{tex(name)}}}")
        rules += rf"\cmidrule(lr){{{end + 1}-{end + span}}}"
        end += span
    heads = [_head(head) for name in names for head in sheet.columns[name]]
    has_both = any(heads) and any(names)
    lines = [" & ".join(over) + r" \\", rules] if has_both else []
    below = [*map(tex, sheet.heads), *(heads if any(heads) else map(tex, names))]
    return lines + [" & ".join(below) + r" \\", r"\midrule"] * any(below)


def _cell(text: str) -> str:
    if isinstance(text, Marked):
        sign = {"°": r"\circ", "†": r"\dagger"}.get(text[-1], tex(text[-1]))
        return rf"{_value(text[:-1])}$^{{{sign}}}$"
    if "\n" in text:
        lines = r" \\ ".join(map(tex, text.split("\n")))
        return rf"\begin{{tabular}}[t]{{@{{}}l@{{}}}}{lines}\end{{tabular}}"
    if text.startswith("  "):
        return rf"\quad {tex(text.lstrip())}"
    command = {Best: r"\textbf", Close: r"\underline"}.get(type(text))
    return f"{command}{{{_value(text)}}}" if command else _value(text)


def _value(text: str) -> str:
    """A value with its deviation in small digits."""
    mean, sign, deviation = text.partition("±")
    return _head(mean) + rf"{{\scriptsize$\pm${tex(deviation)}}}" * bool(sign)


def _head(head: str) -> str:
    """Write Acc_S in mathematics as the paper does, which needs no package."""
    parts = re.fullmatch(r"([A-Za-z]+)_([A-Z])", head)
    return rf"$\mathrm{{{parts[1]}}}_\mathrm{{{parts[2]}}}$" if parts else tex(head)


def tex(text: str) -> str:
    """A text in LaTeX that prints as it is and runs nothing."""
    return "".join(_SPECIAL.get(character, character) for character in printable(text))
