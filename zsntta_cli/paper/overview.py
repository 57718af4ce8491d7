"""All tables and figures in 80 columns: what each has, and what is kept, to do and missing."""

from collections.abc import Sequence

from zsntta_cli.errors import first_of
from zsntta_cli.paper.figures import SHOWN_FIGURES, figure_runs
from zsntta_cli.paper.obtaining import lacking
from zsntta_cli.paper.runs import Wishes, all_runs
from zsntta_cli.paper.tables import FIGURES, TABLES, PaperTable
from zsntta_cli.results.grid import missing_files
from zsntta_cli.results.store import Keeping, kept_before
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.tuned import live_among

_LINE = "{:>4}  {:<47}{:>6}{:>7}{:>6}{:>8}"


def overview(tables: Sequence[PaperTable], wishes: Wishes, keeping: Keeping) -> list[str]:
    """Two lines a table; of all tables, also a line a figure and the sum. Nothing is run."""
    runs_of = {str(table.number): all_runs(wishes, [table]) for table in tables}
    is_all = len(tables) == len(TABLES)
    for number in SHOWN_FIGURES if is_all else ():
        runs_of[f"fig{number}"] = figure_runs(number, wishes)
    every = list(dict.fromkeys(run for runs in runs_of.values() for run in runs))
    kept = set(kept_before(wishes.root, every, keeping))
    absent = lacking(every, missing_files(wishes.root, every)) - kept
    live = live_among(wishes.root, every) - kept - absent
    to_do = set(every) - kept - absent - live

    def counts(runs: Sequence[RunSettings]) -> list[str]:
        groups = kept, to_do, live, absent
        return [
            f"{count:,}" if (count := len(group.intersection(runs))) else "-" for group in groups
        ]

    lines = [_LINE.format("", "runs:", "kept", "to do", "live", "missing")]
    for table in tables:
        lines.append(_LINE.format(table.number, table.title, *counts(runs_of[str(table.number)])))
        lines.append(f"      {table.name}: {first_of(table.id_sets, 4)}")
    if is_all:
        for number, title in FIGURES.items():
            runs = runs_of.get(f"fig{number}")
            of_runs = counts(runs) if runs else [""] * 4
            lines.append(_LINE.format(f"fig{number}", title, *of_runs).rstrip())
        lines.append(_LINE.format("", "all, equal runs once", *counts(every)))
    return [
        *lines,
        "to do: zsntta paper 10 runs them; live: they read images, --live runs them, too;",
        "missing: they lack features, which zsntta extract --paper makes.",
    ]
