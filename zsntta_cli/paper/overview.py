"""An overview of all tables and figures: what each needs, what exists, and what is left to run."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from zsntta_cli import datasets
from zsntta_cli.paper.figures import SHOWN_FIGURES
from zsntta_cli.paper.printed.published import AVERAGE, printed
from zsntta_cli.paper.printed.tables import FIGURES, TABLES, PaperTable
from zsntta_cli.paper.runs import (
    Wishes,
    all_runs,
    count_items,
    present_files,
)
from zsntta_cli.paper.standing import figure_runs, kept_records
from zsntta_cli.results.keeping import Keeping, needed_files
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.tuned import live_among

_HEADS = ("Files", "Record", "Replays left", "Live left", "Items left")


@dataclass(frozen=True)
class RunsState:
    """The state of some runs: how many are finished and how many are left."""

    runs: Sequence[RunSettings]
    kept: int  # runs that are in the store
    files: str  # the number of feature files that exist, of those that are needed
    replays: tuple[int, int]  # runs that are left, and their items
    live: tuple[int, int]


@dataclass(frozen=True)
class Overview:
    """The state of each table and figure, and of all tables' runs together, each run once."""

    by_table: Mapping[PaperTable, RunsState]
    by_figure: Mapping[int, RunsState]
    every: RunsState


def look_over(wishes: Wishes, keeping: Keeping) -> Overview:
    """Find the state of all tables and figures; nothing is run."""
    by_table = {table: all_runs(wishes, [table]) for table in TABLES}
    by_figure = {number: figure_runs(number, wishes) for number in SHOWN_FIGURES}
    every = list(dict.fromkeys(run for runs in by_table.values() for run in runs))
    of_figures = [run for runs in by_figure.values() for run in runs]
    kept = kept_records(wishes, [*every, *of_figures], keeping)

    def state(runs: Sequence[RunSettings]) -> RunsState:
        return _state(runs, wishes.root, kept)

    return Overview(
        {table: state(runs) for table, runs in by_table.items()},
        {number: state(runs) for number, runs in by_figure.items()},
        state(every),
    )


def _state(runs: Sequence[RunSettings], root: Path, kept: Container[RunSettings]) -> RunsState:
    lacking = [run for run in runs if run not in kept]
    by_images = live_among(root, lacking)
    replays = [run for run in lacking if run not in by_images]
    live = [run for run in lacking if run in by_images]
    files = f"{len(present_files(root, runs))}/{len(needed_files(runs))}"
    return RunsState(
        runs, len(runs) - len(lacking), files,
        (len(replays), count_items(root, replays)), (len(live), count_items(root, live)),
    )  # fmt: skip


def draw(overview: Overview) -> list[Table]:
    """Draw the state of the tables, and that of the figures."""
    tables = Table(title="Tables", title_justify="left")
    tables.add_column("", justify="right", no_wrap=True)
    tables.add_column("What it shows")
    for head in ("ID×OOD", *_HEADS):
        tables.add_column(head, justify="right", no_wrap=" " not in head)
    for table, state in overview.by_table.items():
        cells = (str(table.number), table.title, _sets(table), *_cells(state))
        tables.add_row(*map(Text, cells))
    figures = Table(title="Figures", title_justify="left")
    figures.add_column("", no_wrap=True)
    figures.add_column("What it shows")
    for head in _HEADS:
        figures.add_column(head, justify="right", no_wrap=" " not in head)
    for number, _, shows in FIGURES:
        shown = overview.by_figure.get(number)
        figures.add_row(*map(Text, (f"fig{number}", shows, *(_cells(shown) if shown else ()))))
    return [tables, figures]


def _cells(state: RunsState) -> list[str]:
    kept = f"{state.kept:,}/{len(state.runs):,}"
    counts = (state.replays[0], state.live[0], state.replays[1] + state.live[1])
    return [state.files, kept, *(f"{n:,}" if n else "-" for n in counts)]


def _sets(table: PaperTable) -> str:
    """The numbers of ID and OOD sets of a table, as in the paper."""
    id_sets = list(dict.fromkeys(cell.id_set for cell in printed(table.number)))
    ood = max(
        len({cell.ood_set for cell in printed(table.number)} - {AVERAGE, ""}),
        *(len(datasets.partners(name)) for name in id_sets if table.number not in (12, 15)),
        1,
    )
    return f"{len(id_sets)}×{ood}"


def totals(overview: Overview) -> list[str]:
    """Explain the columns, and sum up all tables."""
    every = overview.every
    one_by_one = sum(len(state.runs) for state in overview.by_table.values())
    encoders = ", ".join(dict.fromkeys(run.encoder for run in every.runs))
    replays, live = (f"{n:,} of {items:,} items" for n, items in (every.replays, every.live))
    return [
        f"Files: feature files that are there, of {encoders}; Record: runs that are in the store; "
        "left: runs that are not, and the items of their streams.",
        f"All tables: {len(every.runs):,} runs, equal ones once (table by table {one_by_one:,}), "
        f"{every.kept:,} kept. Left: replays, {replays}; live, {live}.",
    ]
