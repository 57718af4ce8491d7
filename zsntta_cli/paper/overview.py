"""All tables and figures: what each needs, what of it is there, how long the rest takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table as Drawn
from rich.text import Text

from zsntta_cli.paper import files
from zsntta_cli.paper.estimates import MEASURED, PAPERS, Estimate, estimate
from zsntta_cli.paper.printed.published import printed
from zsntta_cli.paper.printed.tables import FIGURES, TABLES, Table
from zsntta_cli.paper.standing import kept_records, needs_images, table_runs
from zsntta_cli.paper.wanted import Wishes
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings


@dataclass(frozen=True)
class State:
    """Where one table stands."""

    table: Table
    runs: Sequence[RunSettings]
    kept: int  # runs that are in the store
    needed: int  # feature files
    there: int
    replays: Estimate  # of runs that are left
    live: Estimate


@dataclass(frozen=True)
class Overview:
    """Where all tables stand, and all of their runs once."""

    states: Sequence[State]
    every: State


def overview(wishes: Wishes, keeping: Keeping) -> Overview:
    """Where all tables stand; nothing is run."""
    by_table = {table: table_runs(table, wishes) for table in TABLES}
    every = list(dict.fromkeys(run for runs in by_table.values() for run in runs))
    kept = kept_records(wishes, every, keeping)
    states = [_state(table, runs, wishes, kept) for table, runs in by_table.items()]
    return Overview(states, _state(TABLES[0], every, wishes, kept))


def _state(
    table: Table,
    runs: Sequence[RunSettings],
    wishes: Wishes,
    kept: Mapping[RunSettings, Record],
) -> State:
    left = [run for run in runs if run not in kept]
    needed = {one for run in runs for one in files.needed(run)}
    replays, live = (
        estimate(wishes.root, [run for run in left if needs_images(run) is is_live], kept)
        for is_live in (False, True)
    )
    there = files.there(wishes.root, runs)
    return State(table, runs, len(runs) - len(left), len(needed), len(there), replays, live)


def drawn(found: Overview) -> list[Drawn]:
    """The tables and the figures, drawn."""
    tables = Drawn(title="Tables", title_justify="left")
    for head, justify in (
        ("", "right"), ("What it shows", "left"), ("ID×OOD", "right"), ("Files", "right"),
        ("Kept", "right"), ("Replays", "right"), ("Live", "right"),
    ):  # fmt: skip
        tables.add_column(head, justify=justify, no_wrap=head != "What it shows")  # type: ignore[arg-type]
    for state in found.states:
        tables.add_row(*map(Text, _row(state)))
    figures = Drawn(title="Figures", title_justify="left")
    figures.add_column("", no_wrap=True)
    figures.add_column("What it shows")
    for number, _, shows in FIGURES:
        figures.add_row(f"fig{number}", Text(shows))
    return [tables, figures]


def _row(state: State) -> list[str]:
    table = state.table
    if not table.is_measured:
        return [str(table.number), table.title, "", "", "", "", ""]
    left = [time.text if time.items else "-" for time in (state.replays, state.live)]
    return [
        str(table.number), table.title, _sets(table), f"{state.there}/{state.needed}",
        f"{state.kept:,}/{len(state.runs):,}", *left,
    ]  # fmt: skip


def _sets(table: Table) -> str:
    """How many ID and OOD sets a table is of, as the paper has them."""
    from zsntta_cli import datasets

    id_sets = list(dict.fromkeys(cell.id_set for cell in printed(table.number)))
    ood = max(
        len({cell.ood_set for cell in printed(table.number)} - {"average", ""}),
        *(len(datasets.partners(name)) for name in id_sets if table.number not in (12, 15)),
        1,
    )
    return f"{len(id_sets)}×{ood}"


def totals(found: Overview) -> list[str]:
    """What all tables come to."""
    every = found.every
    one_by_one = sum(len(state.runs) for state in found.states)
    encoders = ", ".join(dict.fromkeys(run.encoder for run in every.runs))
    return [
        f"Files: feature files that are there, of {encoders}; Kept: runs that are in the store; "
        f"Replays, Live: time of the runs that are left.",
        f"All tables: {len(every.runs):,} runs, equal ones once (table by table {one_by_one:,}), "
        f"{every.kept:,} kept. Replays: about {every.replays.text} {MEASURED}. Live: "
        f"{every.live.items:,} items, about {every.live.text} {every.live.source or PAPERS}.",
    ]
