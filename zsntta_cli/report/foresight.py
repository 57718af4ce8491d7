"""What runs would cost, in lines for `--dry-run`."""

from zsntta_cli.errors import counted
from zsntta_cli.progress import time_text
from zsntta_cli.report.runs import aligned_lines
from zsntta_cli.results.planning import Estimate, Foresight, count_by_method
from zsntta_cli.simulation.tuned import live_among

_HEADS = ("Method", "ID", "Runs", "Kept", "To run", "Lacking")


def foresight_lines(foresight: Foresight) -> list[str]:
    """A table of the runs, their states, and how long they would take."""
    if not foresight.runs:
        return ["There is nothing to run."]
    counts = count_by_method(foresight)
    rows = [(*of, *(f"{n:,}" for n in numbers)) for of, numbers in counts.items()]
    every, kept, to_run, lacking = (sum(column) for column in zip(*counts.values(), strict=True))
    lines = aligned_lines(_HEADS, rows)
    runs = counted(every, "run")
    lines.append(f"{runs}: {kept:,} kept, {to_run:,} to run, {lacking:,} without features.")
    if live := live_among(foresight.root, foresight.left):
        lines.append(f"{len(live):,} of the runs to run are live: they go through the encoder.")
    if to_run:
        lines.append(_duration(foresight.estimate))
    return lines


def _duration(estimate: Estimate) -> str:
    """How long runs would take; without kept runs to estimate from, no figure."""
    if not estimate.runs:
        return "No kept run tells how long they take."
    unknown = f"; of {estimate.unknown:,} more no kept run tells" * bool(estimate.unknown)
    basis = f"{counted(estimate.basis, 'kept run')} of equal methods"
    return (
        f"Time of the methods: about {time_text(estimate.seconds)} for "
        f"{counted(estimate.runs, 'run')}, by {basis}{unknown}."
    )
