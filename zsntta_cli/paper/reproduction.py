"""The whole paper in a folder: tables and figures beside what is printed, with an index of them.

Each file is absent or whole, and the index is written anew with each table. If the command is
stopped, the folder shows what there is so far, and the same command goes on with kept runs.
"""

from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

from zsntta_cli.errors import SettingsError, StoreError, first_line
from zsntta_cli.files import write_whole
from zsntta_cli.paper.comparing import Comparison, count_measured, counts
from zsntta_cli.paper.figures import SHOWN_FIGURES
from zsntta_cli.paper.figures import found as find_figure
from zsntta_cli.paper.printed.tables import FIGURES, TABLES, PaperTable
from zsntta_cli.paper.runs import Wishes
from zsntta_cli.paper.sheets import TableContent, render
from zsntta_cli.paper.standing import Execution, Obtained, illustrate, stand
from zsntta_cli.results.exchange import to_line

INDEX, RECORDS = "index.html", "records.jsonl"
_FORMS = {".md": "markdown", ".tex": "latex", ".csv": "csv"}
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
_TITLE = "A reproduction of “Noisy Test-Time Adaptation in Vision-Language Models”"


@dataclass
class PaperReproduction:
    """A folder of results, and the tables and figures that it has so far."""

    folder: Path
    wishes: Wishes
    execution: Execution
    command: str
    contents: dict[PaperTable, TableContent] = field(default_factory=dict)
    obtained: dict[str, Obtained] = field(default_factory=dict)  # by "table 2", "figure 6"
    undrawn: dict[int, str] = field(default_factory=dict)  # figures that are not drawn, and why

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons of all tables."""
        return [one for content in self.contents.values() for one in content.comparisons]

    @property
    def measured(self) -> int:
        """How many numbers are measured."""
        return count_measured(self.comparisons)

    @property
    def sentence(self) -> str:
        """One line on what there is so far."""
        figures = len(self.drawn)
        drawn = f"{figures} figure{'s' * (figures != 1)}"
        return f"{len(self.contents)} tables, {drawn}; {counts(self.comparisons)}"

    @property
    def drawn(self) -> list[int]:
        """The figures whose files exist."""
        return [number for number in SHOWN_FIGURES if self.figure_path(number).exists()]

    @property
    def whole(self) -> Obtained:
        """What was obtained for all tables and figures together."""
        every = list(self.obtained.values())
        records = {run: record for one in every for run, record in one.records.items()}
        missing: dict[str, dict[str, None]] = {}
        for folder, names in (item for one in every for item in one.missing.items()):
            missing.setdefault(folder, {}).update(dict.fromkeys(names))
        return Obtained(
            self.wishes, records, {folder: list(names) for folder, names in missing.items()},
            list(dict.fromkeys(r for one in every for r in one.not_live if r not in records)),
            any(one.unfinished for one in every),
            {r: line for one in every for r, line in one.failures.items() if r not in records},
        )  # fmt: skip

    def figure_path(self, number: int) -> Path:
        """The file of a figure."""
        return self.folder / f"fig{number}.svg"

    def add_table(self, table: PaperTable, execution: Execution) -> None:
        """Run what a table lacks, and write the table's files."""
        standing = stand([table], self.wishes, execution)
        self.obtained[f"table {table.number}"] = standing
        self.contents[table] = standing.content(table, f"zsntta paper {table.number}")
        for ending, form in _FORMS.items():
            text = render([self.contents[table]], form, to_file=True)
            write_whole(self.folder / f"table{table.number}{ending}", text.encode())
        self.write_index()

    def add_figure(self, number: int, execution: Execution) -> None:
        """Run what a figure lacks, and draw the figure, or note why it is not drawn."""
        from zsntta_cli.report.figures import write

        illustration = illustrate(number, self.wishes, execution)
        self.obtained[f"figure {number}"] = illustration
        try:
            figure = illustration.figure()
            write(self.figure_path(number), figure, find_figure(number).width)
            self.undrawn.pop(number, None)
        except (SettingsError, StoreError) as error:
            self.undrawn[number] = first_line(error)
        self.write_index()

    def write_index(self) -> None:
        """Write the page that links to the files that there are so far, with counts of numbers."""
        items = []
        for table, content in self.contents.items():
            name = f"table{table.number}"
            links = " ".join(f'<a href="{name}{ending}">{ending}</a>' for ending in _FORMS)
            items.append(
                f"<li>Table {table.number}, {escape(table.title)} ({links}): "
                f"{counts(content.comparisons)}"
            )
        for number, _, shows in FIGURES:
            if number in self.drawn:
                items.append(f'<li><a href="fig{number}.svg">Figure {number}</a>, {escape(shows)}')
            elif number in self.undrawn:
                items.append(f"<li>Figure {number} is not drawn: {escape(self.undrawn[number])}")
        page = _PAGE.format(
            title=_TITLE, sentence=self.sentence, command=escape(self.command),
            items="\n".join(items),
        )  # fmt: skip
        write_whole(self.folder / INDEX, page.encode())

    def write_records(self) -> None:
        """Write all records of the tables and the figures."""
        text = "".join(f"{to_line(record)}\n" for record in self.whole.records.values())
        write_whole(self.folder / RECORDS, text.encode())


def reproduce(
    folder: Path, wishes: Wishes, execution: Execution, command: str
) -> PaperReproduction:
    """Write all tables and figures into a folder: first by replays, then by live runs if allowed.

    A run that lacks features or fails leaves its number out, and the others go on.
    """
    execution = replace(execution, goes_on=True)
    result = PaperReproduction(folder, wishes, execution, command)
    passes = [replace(execution, live=None)] + [execution] * bool(execution.live)
    for one_pass in passes:
        for table in TABLES:
            if not result.whole.unfinished:
                result.add_table(table, one_pass)
        for number in SHOWN_FIGURES:
            if not result.whole.unfinished:
                result.add_figure(number, one_pass)
    result.write_records()
    return result
