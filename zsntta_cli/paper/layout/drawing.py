"""Sheets as texts: drawn for the terminal, Markdown, LaTeX. Light: no NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass

from zsntta_cli.errors import printable
from zsntta_cli.paper.layout.sheets import Line, Sheet

_ANY_WIDTH = 10_000  # of what goes to a file or a pipe
_MARKS = ("!", "=", "*")
_LATEX = {"±": r" $\pm$ ", "×": r"$\times$", "✓": r"$\checkmark$", "±-": "-"}


@dataclass(frozen=True)
class Page:
    """A table as people read it."""

    title: str
    under: Sequence[str]  # lines below the title
    sheets: Sequence[Sheet]
    foot: Sequence[str]  # notes, and what the cells sum up to


def rich_page(page: Page, to_file: bool = False) -> str:
    """For the terminal, if there is one: as many parts as it takes to show all columns."""
    from zsntta_cli.progress import console

    screen = console(plain=to_file)
    width = screen.width if screen.is_terminal else _ANY_WIDTH
    with screen.capture() as captured:
        for line in (page.title, *page.under):
            screen.print(printable(line), markup=False, soft_wrap=True)
        for sheet in page.sheets:
            for part in _parts(sheet, width):
                screen.width = max(width, _width(sheet, part))  # no number is cut
                screen.print(_rich(sheet, part))
        for line in page.foot:
            screen.print(printable(line), markup=False, soft_wrap=True)
    return captured.get()


def _cells(sheet: Sheet, column: str) -> list[str]:
    """The texts of a column: its metrics side by side, each as wide as its widest."""
    heads = sheet.columns[column]
    rows = [texts.get(column, ("",) * len(heads)) for _, texts in sheet.lines]
    sides = []
    for i, head in enumerate(heads):
        texts = [row[i] for row in rows]
        room = " " * any(map(_is_marked, texts))  # numbers stay below each other
        padded = [text if _is_marked(text) else text + room for text in (head, *texts)]
        widest = max(map(len, padded))
        sides.append([text.rjust(widest) for text in padded])
    return [" ".join(row) for row in zip(*sides, strict=True)]


def _is_marked(text: str) -> bool:
    """Whether a number has a mark or the letter of a footnote behind it."""
    is_mark = text[-1:] in _MARKS or (text[-1:].isascii() and text[-1:].islower())
    return is_mark and text[-2:-1].isdigit()


def _label_width(sheet: Sheet) -> int:
    return sum(
        max(len(head), *(len(line[i]) for line, _ in sheet.lines)) + 3
        for i, head in enumerate(sheet.heads)
    )


def _column_width(sheet: Sheet, column: str) -> int:
    return max(len(column), *map(len, _cells(sheet, column))) + 3


def _width(sheet: Sheet, columns: Sequence[str]) -> int:
    widths = sum(_column_width(sheet, column) for column in columns)
    return max(_label_width(sheet) + widths + 1, len(sheet.title))


def _parts(sheet: Sheet, width: int) -> list[list[str]]:
    """The columns, in parts that fit."""
    parts: list[list[str]] = []
    for column in sheet.columns:
        if parts and _width(sheet, [*parts[-1], column]) <= width:
            parts[-1].append(column)
        else:
            parts.append([column])
    return parts


def _rich(sheet: Sheet, columns: Sequence[str]) -> "object":
    from rich.table import Table
    from rich.text import Text

    title = Text(printable(sheet.title)) if sheet.title else None
    drawn = Table(title=title, title_justify="left")
    for head in sheet.heads:
        drawn.add_column(head, no_wrap=True)
    cells = {column: _cells(sheet, column) for column in columns}
    for column in columns:
        heads = "\n".join(part for part in (column, cells[column][0]) if part.strip())
        drawn.add_column(Text(printable(heads, kept="\n")), justify="right", no_wrap=True)
    for i, (line, _) in enumerate(sheet.lines):
        if i and not line[0].startswith(" ") and sheet.lines[i - 1][0][0].startswith(" "):
            drawn.add_section()
        texts = (*line, *(cells[column][i + 1] for column in columns))
        drawn.add_row(*(Text(printable(text)) for text in texts))
    return drawn


def markdown_page(page: Page) -> str:
    """GitHub's tables."""
    parts = [f"**{page.title}**\n", *(f"{line}\n" for line in page.under)]
    for sheet in page.sheets:
        heads = [*sheet.heads, *(f"{c} {m}".strip() for c, ms in sheet.columns.items() for m in ms)]
        rule = ["---"] * len(sheet.heads) + ["---:"] * (len(heads) - len(sheet.heads))
        rows = [heads, rule, *_plain_rows(sheet)]
        text = "\n".join(f"| {' | '.join(_piped(part) for part in row)} |" for row in rows)
        parts += [f"{sheet.title}\n"] * bool(sheet.title) + [f"{text}\n"]
    return "\n".join([*parts, *(f"- {line}" for line in page.foot)]) + "\n"


def _piped(text: str) -> str:
    return text.strip().replace("|", r"\|")


def _plain_rows(sheet: Sheet) -> list[list[str]]:
    """A text a metric, empty where there is none."""
    rows = []
    for line, texts in sheet.lines:
        row = list(line)
        for column, heads in sheet.columns.items():
            row += texts.get(column, ("",) * len(heads))
        rows.append(row)
    return rows


def latex_page(page: Page) -> str:
    """Tables with booktabs rules, as the paper's; what is said of them in comments."""
    said = [f"% {line}" for line in (page.title, *page.under)]
    tables = [line for sheet in page.sheets for line in _latex(sheet)]
    return "\n".join([*said, *tables, *(f"% {line}" for line in page.foot)]) + "\n"


def _latex(sheet: Sheet) -> list[str]:
    spans = [
        rf"\multicolumn{{{len(heads)}}}{{c}}{{{_escaped(column)}}}"
        for column, heads in sheet.columns.items()
    ]
    metrics = [_escaped(head) for heads in sheet.columns.values() for head in heads]
    before: Line = ("",) * len(sheet.heads)
    return [
        f"% {sheet.title}",
        rf"\begin{{tabular}}{{{'l' * len(before)}*{{{len(metrics)}}}{{c}}}}",
        r"\toprule",
        " & ".join([*before, *spans]) + r" \\",
        " & ".join([*map(_escaped, sheet.heads), *metrics]) + r" \\",
        r"\midrule",
        *(" & ".join(map(_escaped, row)) + r" \\" for row in _plain_rows(sheet)),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _escaped(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    for character, command in _LATEX.items():
        text = text.replace(character, command)
    return text.replace("  ", r"\quad ") if text.startswith("  ") else text
