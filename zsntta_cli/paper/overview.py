"""All tables and figures: what each needs, what of it is there, what is left to run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from zsntta_cli import datasets
from zsntta_cli.paper.printed.published import AVERAGE, printed
from zsntta_cli.paper.printed.tables import FIGURES, TABLES, PaperTable
from zsntta_cli.paper.runs import (
    Wishes,
    count_items,
    needed_files,
    needs_images,
    present_files,
    table_runs,
)
from zsntta_cli.paper.standing import kept_records
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings


@dataclass(frozen=True)
class RunsLeft:
    """Runs that are neither kept nor made."""

    runs: int
    items: int

    def __str__(self) -> str:
        return f"{self.runs:,} of {self.items:,} items"


@dataclass(frozen=True)
class TableState:
    """Where one table stands."""

    table: PaperTable
    runs: Sequence[RunSettings]
    kept: int  # runs that are in the store
    needed: int  # feature files
    present: int
    replays: RunsLeft
    live: RunsLeft


@dataclass(frozen=True)
class Overview:
    """Where all tables stand, and all of their runs once."""

    states: Sequence[TableState]
    every: TableState


def look_over(wishes: Wishes, keeping: Keeping) -> Overview:
    """Where all tables stand; nothing is run."""
    by_table = {table: table_runs(table, wishes) for table in TABLES}
    every = list(dict.fromkeys(run for runs in by_table.values() for run in runs))
    kept = kept_records(wishes, every, keeping)
    states = [_state(table, runs, wishes, kept) for table, runs in by_table.items()]
    return Overview(states, _state(TABLES[0], every, wishes, kept))


def _state(
    table: PaperTable,
    runs: Sequence[RunSettings],
    wishes: Wishes,
    kept: Mapping[RunSettings, Record],
) -> TableState:
    runs_left = [run for run in runs if run not in kept]
    by_kind = [
        [run for run in runs_left if needs_images(run) is is_live] for is_live in (False, True)
    ]
    replays, live = (
        RunsLeft(len(of_kind), count_items(wishes.root, of_kind)) for of_kind in by_kind
    )
    needed = {file for run in runs for file in needed_files(run)}
    present = present_files(wishes.root, runs)
    return TableState(
        table, runs, len(runs) - len(runs_left), len(needed), len(present), replays, live
    )


def draw(overview: Overview) -> list[Table]:
    """Draw the tables and the figures."""
    tables = Table(title="Tables", title_justify="left")
    tables.add_column("", justify="right", no_wrap=True)
    tables.add_column("What it shows")
    for head in ("ID×OOD", "Files", "Kept", "Replays left", "Live left", "Items left"):
        tables.add_column(head, justify="right", no_wrap=" " not in head)
    for state in overview.states:
        tables.add_row(*map(Text, _row(state)))
    figures = Table(title="Figures", title_justify="left")
    figures.add_column("", no_wrap=True)
    figures.add_column("What it shows")
    for number, _, shows in FIGURES:
        figures.add_row(f"fig{number}", Text(shows))
    return [tables, figures]


def _row(state: TableState) -> list[str]:
    table = state.table
    if not table.is_measured:
        return [str(table.number), table.title, *[""] * 6]
    counts = (state.replays.runs, state.live.runs, state.replays.items + state.live.items)
    return [
        str(table.number), table.title, _sets(table), f"{state.present}/{state.needed}",
        f"{state.kept:,}/{len(state.runs):,}", *(f"{n:,}" if n else "-" for n in counts),
    ]  # fmt: skip


def _sets(table: PaperTable) -> str:
    """How many ID and OOD sets a table is of, as the paper has them."""
    id_sets = list(dict.fromkeys(cell.id_set for cell in printed(table.number)))
    ood = max(
        len({cell.ood_set for cell in printed(table.number)} - {AVERAGE, ""}),
        *(len(datasets.partners(name)) for name in id_sets if table.number not in (12, 15)),
        1,
    )
    return f"{len(id_sets)}×{ood}"


def totals(overview: Overview) -> list[str]:
    """What all tables come to."""
    every = overview.every
    one_by_one = sum(len(state.runs) for state in overview.states)
    encoders = ", ".join(dict.fromkeys(run.encoder for run in every.runs))
    return [
        f"Files: feature files that are there, of {encoders}; Kept: runs that are in the store; "
        f"left: runs that are not, and the items of their streams.",
        f"All tables: {len(every.runs):,} runs, equal ones once (table by table {one_by_one:,}), "
        f"{every.kept:,} kept. Left: replays, {every.replays}; live, {every.live}.",
    ]
