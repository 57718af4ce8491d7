"""`--dry-run`: what a command would run, said in place of running it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from zsntta_cli.cli.line.command import completed, say
from zsntta_cli.cli.line.options import option
from zsntta_cli.errors import counted

if TYPE_CHECKING:
    from zsntta_cli.results.keeping import Keeping
    from zsntta_cli.simulation.runs import RunSettings

NOTHING_DONE = "Nothing was run or written (--dry-run)."
DryRun = Annotated[
    bool,
    option(
        "--dry-run",
        panel="How it runs",
        help="Say what would be run, what is kept, what is missing.",
    ),
]


def say_foresight(
    root: Path, runs: "Sequence[RunSettings]", keeping: "Keeping", given: "Mapping[str, Any]"
) -> None:
    """Say how many different runs are kept, to do and missing, and how to get what is missing."""
    from zsntta_cli.cache.lacking import making_all
    from zsntta_cli.results.keeping import foresee

    seen = foresee(root, runs, keeping)
    say(
        f"{counted(len(runs), 'run')}: {seen.kept:,} kept, {seen.to_run:,} to run, "
        f"{seen.lacking:,} without features."
    )
    if seen.missing:
        count = sum(map(len, seen.missing.values()))
        missing = f"{counted(count, 'feature file')} missing: type {making_all(seen.missing, root)}"
        say(completed(missing, given))
    for reason in seen.reasons:
        say(completed(str(reason), given))
    say(NOTHING_DONE)
