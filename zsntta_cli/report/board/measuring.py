"""The runs of a board, made or taken from the store: pair by pair, each told when it is done."""

import itertools
import time

from zsntta_cli.progress import Reporter
from zsntta_cli.report.board.plan import Plan, Spot
from zsntta_cli.simulation.batch import run_all
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.records.keeping import Keeping

Results = dict[Spot, Record]


def measured(plan: Plan, jobs: int, reporter: Reporter, keeping: Keeping) -> Results:
    """The records of all runs; what Ctrl-C leaves finished is in the store."""
    runs, made = plan.runs(), Results()
    for pair, group in itertools.groupby(runs, lambda spot: spot.pair):
        spots, started = list(group), time.monotonic()
        wanted = list(dict.fromkeys(runs[spot] for spot in spots))
        records = run_all(plan.root, wanted, jobs, None, reporter, keeping)
        found = dict(zip(wanted, records, strict=True))
        made |= {spot: found[runs[spot]] for spot in spots}
        seconds, left = time.monotonic() - started, len(runs) - len(made)
        reporter.note(f"{pair}: {len(wanted):,} runs in {seconds:,.0f} s, {left:,} to go")
    return made
