"""The whole paper in a folder: tables and figures beside what is printed, with a summary.

Each file is absent or whole, and the summary is written anew with each table. If the command is
stopped, the folder shows what there is so far, and the same command goes on with kept runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from zsntta_cli.errors import SettingsError, StoreError, first_line
from zsntta_cli.files import write_whole
from zsntta_cli.paper.figures import SHOWN_FIGURES
from zsntta_cli.paper.figures import found as find_figure
from zsntta_cli.paper.printed.tables import TABLES, PaperTable
from zsntta_cli.paper.runs import Wishes
from zsntta_cli.paper.sheets import TableContent, published_content, render
from zsntta_cli.paper.standing import Execution, Obtained, illustrate, stand
from zsntta_cli.paper.summary import summary_page
from zsntta_cli.paper.tally import CheckTally, tally_all
from zsntta_cli.results.exchange import to_line
from zsntta_cli.results.keeping import kept_before
from zsntta_cli.results.kept import Kept
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings

SUMMARY, RECORDS = "summary.html", "records.jsonl"
_FORMS = {".md": "markdown", ".tex": "latex", ".csv": "csv"}

Making = Callable[[Mapping[str, Sequence[str]]], str]  # the command that makes missing features


@dataclass
class PaperReproduction:
    """A folder of results, and the tables and figures that it has so far."""

    folder: Path
    wishes: Wishes
    execution: Execution
    command: str
    making: Making
    contents: dict[PaperTable, TableContent] = field(default_factory=dict)
    obtained: dict[str, Obtained] = field(default_factory=dict)  # by "table 2", "figure 6"
    undrawn: dict[int, str] = field(default_factory=dict)  # figures that are not drawn, and why

    @property
    def tally(self) -> CheckTally:
        """The counts of numbers in all tables."""
        return tally_all({table: of.comparisons for table, of in self.contents.items()})

    @property
    def sentence(self) -> str:
        """One line on what there is so far."""
        figures = len(self.drawn)
        drawn = f"{figures} figure{'s' * (figures != 1)}"
        return f"{len(self.contents)} tables, {drawn}; {self.tally.sentence}"

    @property
    def drawn(self) -> list[int]:
        """The figures whose files exist."""
        return [number for number in SHOWN_FIGURES if self.figure_path(number).exists()]

    @property
    def unfinished(self) -> bool:
        """Whether Ctrl-C stopped a live run."""
        return any(obtained.unfinished for obtained in self.obtained.values())

    @property
    def records(self) -> dict[RunSettings, Record]:
        """All records of tables and figures, each once."""
        return {
            run: record
            for obtained in self.obtained.values()
            for run, record in obtained.records.items()
        }

    def figure_path(self, number: int) -> Path:
        """The file of a figure."""
        return self.folder / f"fig{number}.svg"

    def add_table(self, table: PaperTable, execution: Execution) -> None:
        """Run what a table lacks, and write the table's files."""
        if table.is_measured:
            standing = stand([table], self.wishes, execution)
            self.obtained[f"table {table.number}"] = standing
            self.contents[table] = standing.content(table, f"zsntta paper {table.number}")
        else:
            self.contents[table] = published_content(table, f"zsntta paper {table.number}")
        for ending, form in _FORMS.items():
            text = render([self.contents[table]], form, to_file=True)
            write_whole(self.folder / f"table{table.number}{ending}", text.encode())
        self.write_summary()

    def add_figure(self, number: int, execution: Execution) -> None:
        """Run what a figure lacks, and draw the figure, or note why it is not drawn."""
        from zsntta_cli.report.plots import write

        illustration = illustrate(number, self.wishes, execution)
        self.obtained[f"figure {number}"] = illustration
        try:
            figure = illustration.figure()
            write(self.figure_path(number), figure, find_figure(number).width)
            self.undrawn.pop(number, None)
        except (SettingsError, StoreError) as error:
            self.undrawn[number] = first_line(error)
        self.write_summary()

    def write_summary(self) -> None:
        """Write the page that sums up what there is so far."""
        write_whole(self.folder / SUMMARY, summary_page(self).encode())

    def write_records(self) -> None:
        """Write all records of the tables and the figures."""
        kept = kept_before(
            self.wishes.root, list(self.records), replace(self.execution.keeping, fresh=False)
        )
        every = [kept.get(run) or Kept(record, {}) for run, record in self.records.items()]
        text = "".join(f"{to_line(one)}\n" for one in every)
        write_whole(self.folder / RECORDS, text.encode())


def reproduce(
    folder: Path, wishes: Wishes, execution: Execution, command: str, making: Making
) -> PaperReproduction:
    """Write all tables and figures into a folder: first by replays, then by live runs if allowed.

    A run that lacks features or fails leaves its number out, and the others go on. `making` gives
    the command that makes the features of sets, by the folder of their encoder.
    """
    execution = replace(execution, goes_on=True)
    whole = PaperReproduction(folder, wishes, execution, command, making)
    passes = [replace(execution, live=None)] + [execution] * bool(execution.live)
    for one_pass in passes:
        for table in TABLES:
            if not whole.unfinished and (table.is_measured or one_pass is passes[0]):
                whole.add_table(table, one_pass)
        for number in SHOWN_FIGURES:
            if not whole.unfinished:
                whole.add_figure(number, one_pass)
    whole.write_records()
    return whole
