"""The runs of a board, made or taken from the store."""

import time

from zsntta_cli.progress import Reporter
from zsntta_cli.report.board.plan import Plan, Spot
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.results.obtain import run_all
from zsntta_cli.simulation.record import Record

Results = dict[Spot, Record]


def measured(plan: Plan, jobs: int, reporter: Reporter, keeping: Keeping) -> Results:
    """The records of all runs; what Ctrl-C leaves finished is in the store."""
    runs, started = plan.runs(), time.monotonic()
    wanted = list(dict.fromkeys(runs.values()))
    records = run_all(plan.root, wanted, jobs, None, reporter, keeping)
    reporter.note(f"{len(wanted):,} runs in {time.monotonic() - started:,.0f} s")
    found = dict(zip(wanted, records, strict=True))
    return {spot: found[run] for spot, run in runs.items()}
