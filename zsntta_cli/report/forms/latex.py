"""Draw sheets as LaTeX that fits its text, with booktabs' rules.

Sets stand side by side, each with its metrics, where there is room; else metrics are groups of
rows. Then long names of sets are abbreviated, with a key below, long texts take several lines, and
at last columns are divided into blocks. Widths are estimated, from above, for Computer Modern.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from zsntta_cli.errors import printable
from zsntta_cli.report.sheet import AVERAGE, Best, Close, Marked, Sheet, SheetRow

_PACKAGES = r"% Needs \usepackage{booktabs}"
_UNDERLINED = "An underlined value"
_SETUP = r"\footnotesize\setlength{\tabcolsep}{3pt}"
_SYMBOLS = {"±": r"$\pm$", "×": r"$\times$", "✓": r"$\checkmark$", "µ": r"$\mu$", "−": "$-$"}
_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{character: "\\" + character for character in "&%$#_{}"}, **_SYMBOLS,
}  # fmt: skip

# In points: the text of LaTeX's article, and the narrowest of usual papers with two columns.
_ROOM = {"": 345.0, "page": 487.0, "column": 234.0}
_SIZE, _SMALL = 8.0, 7.0  # \footnotesize and \scriptsize
_GAP = 6.0  # between two columns
_BOLD = 1.16  # times as wide
_NARROW, _MIDDLE, _BROAD = " .,:;'il|!j", "frt()-[]/I", "mMwW%@&×✓−+="
_MOST_ROWS = 45  # of one table, so that it fits a page
_LINES = (30, 24, 20, 16, 12, 8)  # characters after which a text goes on in the next line


def latex(sheets: Sequence[Sheet]) -> str:
    """Tables that fit; a column's best is bold, values close to it are underlined."""
    return "\n".join(map(_latex, sheets))


def _latex(sheet: Sheet) -> str:
    has_check = any("✓" in text for row in sheet.plain() for text in row)
    packages = _PACKAGES + r" and \usepackage{amssymb}" * has_check
    made_by = [f"% Made by: {_comment(sheet.command)}"] if sheet.command else []
    notes = [f"% {_comment(note)}" for note in sheet.notes_on(_UNDERLINED)]
    titles = [f"% {_comment(line)}" for line in (*sheet.above, sheet.title) if line]
    lines = [*titles, packages, *made_by, *notes]
    for place, (metric, tabulars) in enumerate(_fitted(sheet, _ROOM[sheet.width])):
        lines += _environment(sheet, metric, tabulars, is_first=place == 0)
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    """A text as one line of a comment, so that LaTeX runs nothing of it, whatever it holds."""
    return printable(text)


def _environment(sheet: Sheet, metric: str, tabulars: Sequence[str], is_first: bool) -> list[str]:
    """Tabulars below one another, within a float if it has a caption or a label."""
    if not (sheet.caption or sheet.reference):
        return [r"\begin{center}", _SETUP, *tabulars, r"\end{center}"]
    float_name = "table*" if sheet.width == "page" else "table"
    words = ": ".join(filter(None, [tex(sheet.caption), _tex_head(metric)]))
    caption = [rf"\caption{{{words}}}"] if sheet.caption else []
    reference = [rf"\label{{{sheet.reference}}}"] if sheet.reference and is_first else []
    begin = [rf"\begin{{{float_name}}}", r"\centering", *caption, *reference, _SETUP]
    return [*begin, *tabulars, rf"\end{{{float_name}}}"]


# What fits.


@dataclass(frozen=True)
class _Layout:
    """A sheet as it is drawn: which names are short, after how many characters texts are broken."""

    sheet: Sheet
    names: Mapping[str, str]  # of columns
    broken: int = 1_000

    def labels_width(self) -> float:
        """The points that the labels take."""
        labels = zip(self.sheet.heads, *(row.labels for row in self.sheet.rows), strict=True)
        return sum(max(map(self._cell, texts)) + _GAP for texts in labels)

    def column_width(self, column: str) -> float:
        """The points that a column takes."""
        return max(self._values_width(column), self._cell(self.names[column]) + _GAP)

    def is_long(self, column: str) -> bool:
        """Whether the name of a column is longer than its values."""
        return self._cell(column) + _GAP > self._values_width(column)

    def _values_width(self, column: str) -> float:
        values = zip(*self.sheet.texts(column), strict=True)
        return sum(max(map(self._cell, texts)) + _GAP for texts in values)

    def _cell(self, text: str) -> float:
        return max(_text_width(type(text)(line)) for line in _broken(text, self.broken))


def _fits(layouts: Sequence[_Layout], columns: Sequence[str], room: float) -> bool:
    """Whether some columns fit beside the labels, the rows of all layouts below one another."""
    taken = max(layout.labels_width() for layout in layouts)
    taken += sum(max(layout.column_width(column) for layout in layouts) for column in columns)
    return taken - _GAP <= room  # there is no gap at the edges


def _fitted(sheet: Sheet, room: float) -> list[tuple[str, list[str]]]:
    """The tabulars of a sheet, in one table or one a metric, each with its metric."""
    columns = list(sheet.columns)
    plain = _Layout(sheet, {column: column for column in columns})
    if not columns or _fits([plain], columns, room):
        return [("", _tabular(plain, columns))]
    every_head = set(sheet.columns.values())
    is_grouped = len(every_head) == 1 and len(sheet.columns[columns[0]]) > 1
    heads = sheet.columns[columns[0]] if is_grouped else ("",)
    groups = {head: _of_metric(sheet, i) if is_grouped else sheet for i, head in enumerate(heads)}
    layouts = _layouts(groups, columns, room)
    blocks = _blocks(layouts, columns, room)
    if len(groups) * len(sheet.rows) <= _MOST_ROWS:
        return [("", _below(layouts, blocks))]
    return [(head, _below({head: layout}, blocks)) for head, layout in layouts.items()]


def _of_metric(sheet: Sheet, place: int) -> Sheet:
    """A sheet with one of its metrics."""
    rows = [
        SheetRow(row.labels, {c: texts[place : place + 1] for c, texts in row.values.items()},
                 row.has_rule_above)
        for row in sheet.rows
    ]  # fmt: skip
    return replace(sheet, columns=dict.fromkeys(sheet.columns, ("",)), rows=rows)


def _layouts(
    groups: Mapping[str, Sheet], columns: Sequence[str], room: float
) -> dict[str, _Layout]:
    """The layouts of a sheet's groups, with as little changed as lets them fit, or all."""
    whole = {column: column for column in columns}
    short = whole | {
        column: name
        for column, name in abbreviations(columns).items()
        if any(_Layout(group, whole).is_long(column) for group in groups.values())
    }
    choices = [(whole, 1_000), (short, 1_000), *((short, most) for most in _LINES)]
    if any(" " in column for column in columns):  # sentences are broken, and not abbreviated
        choices = [(whole, most) for most in (1_000, *_LINES)]
    every = [
        {head: _Layout(group, names, broken) for head, group in groups.items()}
        for names, broken in choices
    ]
    fitting = [layouts for layouts in every if _fits([*layouts.values()], columns, room)]
    fitting += [  # in blocks
        layouts
        for layouts in every[1:]
        if all(_fits([*layouts.values()], [column], room) for column in columns)
    ]
    return fitting[0] if fitting else every[-1]


def abbreviations(names: Sequence[str]) -> dict[str, str]:
    """Short names, each another: the first letters of their words, and all digits."""
    short: dict[str, str] = {}
    for name in names:
        words = re.findall(r"[^\W\d_]+|\d+", name) or [name]
        for letters in count(1):
            first = words[0][:letters].capitalize() if not words[0].isdigit() else words[0]
            rest = (word if word.isdigit() else word[0].upper() for word in words[1:])
            text = first + "".join(rest)
            if letters > len(words[0]) or len(text) >= len(name) or name == AVERAGE:
                text = name
            if text == name or text not in (*short.values(), *names):
                short[name] = text
                break
    return short


def _blocks(layouts: Mapping[str, _Layout], columns: Sequence[str], room: float) -> list[list[str]]:
    """The columns in blocks that fit, the average first where there are several."""
    every = [*layouts.values()]
    if _fits(every, columns, room):
        return [[*columns]]
    blocks: list[list[str]] = [[]]
    for column in sorted(columns, key=lambda column: column != AVERAGE):
        if blocks[-1] and not _fits(every, [*blocks[-1], column], room):
            blocks.append([column])
        else:
            blocks[-1].append(column)
    return blocks


def _below(layouts: Mapping[str, _Layout], blocks: Sequence[Sequence[str]]) -> list[str]:
    """The tabulars of some blocks of columns, each with all groups, and the key below."""
    lines: list[str] = []
    for block in blocks:
        lines += [r"\par\medskip"] * bool(lines)
        lines += _grouped(layouts, block)
    names = next(iter(layouts.values())).names
    key = [f"{short}: {name}" for name, short in names.items() if short != name]
    below = tex("; ".join(key))
    return lines + [rf"\par\smallskip{{\scriptsize {below}}}"] * bool(key)


# What is written.


def _grouped(layouts: Mapping[str, _Layout], columns: Sequence[str]) -> list[str]:
    """A tabular with the rows of each metric below its name."""
    if len(layouts) == 1 and "" in layouts:
        return _tabular(layouts[""], columns)
    first, *_ = layouts.values()
    before = len(first.sheet.heads)
    lines = _opened(first, columns, len(columns))
    for head, layout in layouts.items():
        name = rf"\multicolumn{{{before + len(columns)}}}{{@{{}}l}}{{\textit{{{_tex_head(head)}}}}}"
        lines += [r"\midrule", name + r" \\", *_body(layout, columns, r"\addlinespace")]
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _tabular(layout: _Layout, columns: Sequence[str]) -> list[str]:
    spans = sum(len(layout.sheet.columns[column]) for column in columns)
    body = _body(layout, columns, r"\midrule")
    opened = _opened(layout, columns, spans)
    return [*opened, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]


def _alignment(layout: _Layout, columns: Sequence[str]) -> str:
    """Numbers to the right, words in the middle."""
    texts = (row.values.get(c, ()) for row in layout.sheet.rows for c in columns)
    is_words = any(text and not re.match(r"[-+\d]", text) for row in texts for text in row)
    return "c" if is_words else "r"


def _opened(layout: _Layout, columns: Sequence[str], values: int) -> list[str]:
    """The beginning of a tabular with its heads; a single metric has one line."""
    sheet = layout.sheet
    before, spans = len(sheet.heads), [len(sheet.columns[column]) for column in columns]
    kind = f"@{{}}{'l' * before}*{{{values}}}{{{_alignment(layout, columns)}}}@{{}}"
    begin = [rf"\begin{{tabular}}{{{kind}}}", r"\toprule"]
    names = [_tex_cell(layout.names[column], layout.broken) for column in columns]
    labels = [_tex_cell(head, layout.broken) for head in sheet.heads]
    heads = [_tex_head(head) for column in columns for head in sheet.columns[column]]
    if not any(heads):
        return [*begin, " & ".join([*labels, *names]) + r" \\"]
    over = [rf"\multicolumn{{{n}}}{{c}}{{{c}}}" for c, n in zip(names, spans, strict=True)]
    ends = [before + sum(spans[: i + 1]) for i in range(len(spans))]
    rules = "".join(
        rf"\cmidrule(lr){{{end - n + 1}-{end}}}" for end, n in zip(ends, spans, strict=True)
    )
    first = [" & ".join([*[""] * before, *over]) + r" \\", rules] if any(columns) else []
    return [*begin, *first, " & ".join([*labels, *heads]) + r" \\"]


def _body(layout: _Layout, columns: Sequence[str], rule: str) -> Iterator[str]:
    for row in layout.sheet.rows:
        yield from [rule] * row.has_rule_above
        values = [
            text
            for column in columns
            for text in row.values.get(column, ("",) * len(layout.sheet.columns[column]))
        ]
        yield " & ".join(_tex_cell(text, layout.broken) for text in (*row.labels, *values)) + r" \\"


def tex(text: str) -> str:
    """A text, escaped for LaTeX."""
    return "".join(_SPECIAL.get(character, character) for character in printable(text))


def _tex_cell(text: str, most: int = 1_000) -> str:
    lines = _broken(text, most)
    if len(lines) > 1:
        below = r" \\ ".join(map(tex, lines))
        return rf"\begin{{tabular}}[t]{{@{{}}l@{{}}}}{below}\end{{tabular}}"
    if isinstance(text, Marked):
        return rf"{_tex_value(text[:-1])}$^{{{tex(text[-1])}}}$"
    if text.startswith("  "):
        return rf"\quad {tex(text.lstrip())}"
    if isinstance(text, Best):
        return rf"\textbf{{{_tex_value(text)}}}"
    return rf"\underline{{{_tex_value(text)}}}" if isinstance(text, Close) else _tex_value(text)


def _tex_value(text: str) -> str:
    """A value with its deviation in small digits."""
    mean, sign, deviation = text.partition("±")
    return tex(mean) + rf"{{\scriptsize$\pm${tex(deviation)}}}" * bool(sign)


def _tex_head(head: str) -> str:
    """Write Acc_S in mathematics as the paper does, which needs no package."""
    parts = re.fullmatch(r"([A-Za-z]+)_([A-Z])", head)
    return rf"$\mathrm{{{parts[1]}}}_\mathrm{{{parts[2]}}}$" if parts else tex(head)


# How wide it is.


def _broken(text: str, most: int) -> list[str]:
    """A text in lines, broken at its blanks; a value is one line."""
    if len(text) <= most or isinstance(text, Marked | Best | Close):
        return [text]
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _text_width(text: str) -> float:
    """The points of a text, rather too many."""
    mean, sign, deviation = text.partition("±")
    wide = _SIZE * sum(map(_character_width, mean))
    small = _SMALL * 1.07 * (sum(map(_character_width, deviation)) + 0.89) if sign else 0.0
    return (wide + small) * (_BOLD if isinstance(text, Best) else 1)


def _character_width(character: str) -> float:
    """A share of the font's size."""
    if character.isdigit():
        return 0.535
    if character in _BROAD:
        return 1.1
    if character in _NARROW:
        return 0.36
    return 0.45 if character in _MIDDLE else 0.82 if character.isupper() else 0.58
