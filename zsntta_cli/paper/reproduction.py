"""The whole paper: what is kept, to do and missing of it; and in a folder, with an index.

Each file is absent or whole, and the index is written anew with each table. If the command is
stopped, the folder shows what there is so far, and the same command goes on with kept runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from zsntta_cli.errors import SettingsError, StoreError, counted, first_line, first_of
from zsntta_cli.files import write_whole
from zsntta_cli.paper.compare import counts
from zsntta_cli.paper.figures import (
    GRADIENTS,
    SHOWN_FIGURES,
    WIDTHS,
    draw,
    figure_runs,
    published,
)
from zsntta_cli.paper.measuring import Measuring
from zsntta_cli.paper.runs import Wishes, all_runs
from zsntta_cli.paper.shown import TableContent, render
from zsntta_cli.paper.tables import FIGURES, TABLES, PaperTable
from zsntta_cli.report.figure import Figure
from zsntta_cli.results.exchange import to_line
from zsntta_cli.results.grid import foresee
from zsntta_cli.results.store import Keeping
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.tuned import live_among

INDEX, RECORDS = "index.html", "records.jsonl"
_LINE = "{:>4}  {:<47}{:>6}{:>7}{:>6}{:>8}"  # of the overview
_FORMS = {".md": "markdown", ".tex": "latex", ".csv": "csv"}
_TITLE = "A reproduction of “Noisy Test-Time Adaptation in Vision-Language Models”"
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<h1>{title}</h1>
<p>{sentence}. Made by: <code>{command}</code></p>
<ul>
{items}
<li><a href="records.jsonl">records.jsonl</a>: all records
</ul>
</html>
"""


def measured_figure(number: int, measuring: Measuring) -> Figure:
    """Run what a figure lacks, and draw it; built-in sets have no published numbers.

    Raises:
        SettingsError: the figure shows no results, or there is nothing to draw.
        StoreError: no run has all of its features, and others do not go on.
    """
    is_built_in = measuring.wishes.is_built_in
    runs = figure_runs(number, measuring.wishes)
    measuring.obtain(runs, number in GRADIENTS)
    records = [measuring.records[run] for run in runs if run in measuring.records]
    return draw(number, records, None if is_built_in else published(number), is_built_in)


@dataclass
class Reproduction:
    """A folder of results, and the tables and figures that it has so far."""

    folder: Path
    measuring: Measuring
    command: str
    contents: dict[int, TableContent] = field(default_factory=dict)  # by the table's number
    figures: dict[int, str] = field(default_factory=dict)  # why each is not drawn, or nothing

    @property
    def is_measured(self) -> bool:
        """Whether anything is measured."""
        return any(one.is_measured for made in self.contents.values() for one in made.numbers)

    @property
    def sentence(self) -> str:
        """One line on what there is so far."""
        numbers = [number for made in self.contents.values() for number in made.numbers]
        figures = counted(sum(not why for why in self.figures.values()), "figure")
        return f"{counted(len(self.contents), 'table')}, {figures}; {counts(numbers)}"

    def add_table(self, table: PaperTable) -> None:
        """Run what a table lacks, and write the table's files."""
        self.measuring.obtain(all_runs(self.measuring.wishes, [table]))
        made = self.measuring.content(table, f"zsntta paper {table.number}")
        self.contents[table.number] = made
        for ending, form in _FORMS.items():
            text = render([made], form, to_file=True)
            write_whole(self.folder / f"table{table.number}{ending}", text.encode())
        self.write_index()

    def add_figure(self, number: int) -> None:
        """Run what a figure lacks, and draw the figure, or note why it is not drawn."""
        from zsntta_cli.report.figures import write

        try:
            figure = measured_figure(number, self.measuring)
            write(self.folder / f"fig{number}.svg", figure, WIDTHS[number])
            self.figures[number] = ""
        except (SettingsError, StoreError) as error:
            self.figures[number] = first_line(error)
        self.write_index()

    def write_index(self) -> None:
        """Write the page that links to the files that there are so far, with counts of numbers."""
        items = []
        for number, made in self.contents.items():
            links = " ".join(f'<a href="table{number}{ending}">{ending}</a>' for ending in _FORMS)
            title = escape(made.table.title)
            items.append(f"<li>Table {number}, {title} ({links}): {counts(made.numbers)}")
        for number, why in self.figures.items():
            link = f'<a href="fig{number}.svg">Figure {number}</a>, {escape(FIGURES[number])}'
            missing = f"Figure {number} is not drawn: {escape(why)}"
            items.append(f"<li>{missing if why else link}")
        page = _PAGE.format(
            title=_TITLE, sentence=self.sentence, command=escape(self.command),
            items="\n".join(items),
        )  # fmt: skip
        write_whole(self.folder / INDEX, page.encode())


def reproduce(folder: Path, measuring: Measuring, command: str) -> Reproduction:
    """Write all tables and figures into a folder: first by replays, then by live runs if allowed.

    A run that lacks features or fails leaves its number out, and the others go on.
    """
    result, runs_live = Reproduction(folder, measuring, command), measuring.runs_live
    measuring.goes_on = True
    for measuring.runs_live in [False, True] if runs_live else [False]:
        for table in TABLES.values():
            if not measuring.is_unfinished:
                result.add_table(table)
        for number in SHOWN_FIGURES:
            if not measuring.is_unfinished:
                result.add_figure(number)
    lines = "".join(f"{to_line(record)}\n" for record in measuring.records.values())
    write_whole(folder / RECORDS, lines.encode())
    return result


def overview(tables: Sequence[PaperTable], wishes: Wishes, keeping: Keeping) -> list[str]:
    """Two lines a table; of all tables, also a line a figure and the sum. Nothing is run."""
    runs_of = {str(table.number): all_runs(wishes, [table]) for table in tables}
    is_all = len(tables) == len(TABLES)
    for number in SHOWN_FIGURES if is_all else ():
        runs_of[f"fig{number}"] = figure_runs(number, wishes)
    every = list(dict.fromkeys(run for runs in runs_of.values() for run in runs))
    seen = foresee(wishes.root, every, keeping)
    live = live_among(wishes.root, seen.to_run)
    groups = {*seen.kept}, {*seen.to_run} - live, live, {*seen.lacking}

    def line(name: object, title: str, runs: Sequence[RunSettings]) -> str:
        counts = [len(group.intersection(runs)) for group in groups]
        texts = [f"{count:,}" if count else "-" for count in counts] if runs else [""] * 4
        return _LINE.format(name, title, *texts).rstrip()

    lines = [_LINE.format("", "runs:", "kept", "to do", "live", "missing")]
    for table in tables:
        lines.append(line(table.number, table.title, runs_of[str(table.number)]))
        lines.append(f"      {table.name}: {first_of(table.id_sets, 4)}")
    if is_all:
        lines += [
            line(f"fig{n}", title, runs_of.get(f"fig{n}", [])) for n, title in FIGURES.items()
        ]
        lines.append(line("", "all, equal runs once", every))
    return [
        *lines,
        "to do: zsntta paper 10 runs them; live: they read images, --live runs them, too;",
        "missing: they lack features, which zsntta paper 10 --extract makes.",
    ]
