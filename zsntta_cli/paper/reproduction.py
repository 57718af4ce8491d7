"""The whole paper: which of its runs are kept, to do or missing; and a folder with an index.

Each file is absent or complete, and the index is rewritten with each table. If the command is
stopped, the folder shows what is done so far, and the same command resumes with kept runs.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from zsntta_cli.errors import SettingsError, StoreError, counted, first_line, first_of
from zsntta_cli.files import write_whole
from zsntta_cli.paper.compare import Number, counts
from zsntta_cli.paper.figures import SHOWN_FIGURES, WIDTHS, figure_runs
from zsntta_cli.paper.measuring import Measuring
from zsntta_cli.paper.runs import Wishes, cells, runs_of
from zsntta_cli.paper.shown import render
from zsntta_cli.paper.tables import FIGURES, TABLES, PaperTable
from zsntta_cli.results.exchange import to_line
from zsntta_cli.results.grid import foresee
from zsntta_cli.results.store import Keeping
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.tuned import live_among

INDEX, RECORDS = "index.html", "records.jsonl"
_LINE = "{:>4}  {:<47}{:>6}{:>7}{:>6}{:>8}"  # of the overview
_FORMS = {".md": "markdown", ".tex": "latex", ".csv": "csv"}
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>A reproduction</title>
<h1>A reproduction of “Noisy Test-Time Adaptation in Vision-Language Models”</h1>
<p>{}. Made by: <code>{}</code></p>
<ul>
{}
<li><a href="records.jsonl">records.jsonl</a>: all records
</ul>
</html>
"""


def reproduce(folder: Path, measuring: Measuring, command: str) -> tuple[str, bool]:
    """Write all tables and figures into a folder: first by replays, then by live runs if allowed.

    A run that lacks features or fails leaves its number out, and the others go on. Returns one line
    on what there is, and whether anything could be measured.
    """
    from zsntta_cli.report.figures import write

    numbers, items = dict[int, Sequence[Number]](), dict[str, str]()  # by table; of the index
    drawn, every, sentence, measuring.goes_on = set[int](), list[Number](), "", True
    todo: list[PaperTable | int] = [*TABLES.values(), *SHOWN_FIGURES]
    passes = [False, True] if measuring.runs_live else [False]
    for measuring.runs_live, item in itertools.product(passes, todo):
        if measuring.is_unfinished:
            break
        if isinstance(item, PaperTable):
            name = f"table{item.number}"
            [content] = measuring.tables([item], f"zsntta paper {item.number}")
            for ending, form in _FORMS.items():
                text = render([content], form, to_file=True)
                write_whole(folder / (name + ending), text.encode())
            links = " ".join(f'<a href="{name}{ending}">{ending}</a>' for ending in _FORMS)
            numbers[item.number], of_table = content.numbers, counts(content.numbers)
            items[name] = f"Table {item.number}, {escape(item.title)} ({links}): {of_table}"
        else:
            name = f"fig{item}.svg"
            try:
                write(folder / name, measuring.figure(item), WIDTHS[item])
                drawn.add(item)
                items[name] = f'<a href="{name}">Figure {item}</a>, {escape(FIGURES[item])}'
            except (SettingsError, StoreError) as error:
                items[name] = f"Figure {item} is not drawn: {escape(first_line(error))}"
        every = [number for of_table in numbers.values() for number in of_table]
        contents = f"{counted(len(numbers), 'table')}, {counted(len(drawn), 'figure')}"
        sentence = f"{contents}; {counts(every)}"
        listed = "\n".join(f"<li>{item}" for item in items.values())
        write_whole(folder / INDEX, _PAGE.format(sentence, escape(command), listed).encode())
    lines = "".join(f"{to_line(record)}\n" for record in measuring.records.values())
    write_whole(folder / RECORDS, lines.encode())
    return sentence, not all(math.isnan(number.mean) for number in every)


def runs_of_paper(
    wishes: Wishes,
    tables: Iterable[PaperTable] = tuple(TABLES.values()),
    figures: Iterable[int] = SHOWN_FIGURES,
) -> list[RunSettings]:
    """The runs of tables and figures, each once."""
    runs = runs_of(cell for table in tables for cell in cells(table, wishes))
    return list(dict.fromkeys([*runs, *(r for n in figures for r in figure_runs(n, wishes))]))


def overview(tables: Sequence[PaperTable], wishes: Wishes, keeping: Keeping) -> list[str]:
    """Two lines per table; for all tables, also a line per figure and the sum. Nothing is run."""
    figures = FIGURES if len(tables) == len(TABLES) else {}
    every = runs_of_paper(wishes, tables, [n for n in figures if n in SHOWN_FIGURES])
    seen = foresee(wishes.root, every, keeping)
    live = live_among(wishes.root, seen.to_run)
    groups = {*seen.kept}, {*seen.to_run} - live, live, {*seen.lacking}

    def line(name: object, title: str, runs: Sequence[RunSettings]) -> str:
        sizes = [len(group.intersection(runs)) for group in groups]
        texts = [f"{size:,}" if size else "-" for size in sizes] if runs else [""] * 4
        return _LINE.format(name, title, *texts).rstrip()

    lines = [_LINE.format("", "runs:", "kept", "to do", "live", "missing")]
    for table in tables:
        lines.append(line(table.number, table.title, runs_of_paper(wishes, [table], ())))
        lines.append(f"      {table.name}: {first_of(table.id_sets, 4)}")
    for number, title in figures.items():
        runs = figure_runs(number, wishes) if number in SHOWN_FIGURES else []
        lines.append(line(f"fig{number}", title, runs))
    if figures:
        lines.append(line("", "all, equal runs once", every))
    return [
        *lines,
        "to do: zsntta paper 10 runs them. live: they read images; --live runs them too.",
        "missing: they lack features; zsntta paper 10 --extract makes these.",
    ]
