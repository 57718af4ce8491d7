"""`--dry-run`: what a command would run, said in place of running it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli.line.command import say
from zsntta_cli.errors import counted

if TYPE_CHECKING:
    from zsntta_cli.cli.line.hints import Given
    from zsntta_cli.results.keeping import Keeping
    from zsntta_cli.simulation.runs import RunSettings

NOTHING_DONE = "Nothing was run or written (--dry-run)."
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be run, what is kept, what is missing.")
]


def say_foresight(
    root: Path, runs: "Sequence[RunSettings]", keeping: "Keeping", given: "Given"
) -> None:
    """Say what some runs would come to, and how to get what is missing."""
    from zsntta_cli.cli.line.hints import making_all, worded
    from zsntta_cli.report.foresight import foresight_lines
    from zsntta_cli.results.planning import foresee
    from zsntta_cli.simulation.notes import notes_before

    foresight = foresee(root, runs, keeping)
    for note in notes_before(root, foresight.left):
        say(note, err=True)
    for line in foresight_lines(foresight):
        say(line)
    if foresight.missing:
        count = sum(map(len, foresight.missing.values()))
        command = making_all(foresight.missing, given)
        say(f"{counted(count, 'feature file')} missing: type {command}")
    for reason in foresight.reasons:
        say(worded(reason, given))
    say(NOTHING_DONE)
