"""What `zsntta paper fig2` shows, and what is said of tables and figures that are not whole."""

from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli.cli.command import misused, say

if TYPE_CHECKING:
    from zsntta_cli.cli.hints import Given
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.paper.standing import Execution, Obtained
    from zsntta_cli.report.figure import Figure


def show(
    number: int, wishes: "Wishes", execution: "Execution", output: Path, given: "Given"
) -> None:
    """Draw a figure of the paper from its runs."""
    from zsntta_cli.paper.standing import illustrate

    illustration = illustrate(number, wishes, execution)
    say_what_is_left(illustration, given)
    _write(number, illustration.figure(), output)


def show_published(number: int, output: Path) -> None:
    """Draw what the paper's tables say of a figure: nothing is run."""
    from zsntta_cli.paper.figures import PAPER, draw, published

    printed = published(number)
    if not printed:
        raise misused(f"the paper prints no number that figure {number} follows from.")
    _write(number, draw(number, [], printed, PAPER), output)


def _write(number: int, figure: "Figure", output: Path) -> None:
    from zsntta_cli.paper.figures import found
    from zsntta_cli.report.plots import write

    for note in figure.notes:
        say(f"note: {note}.", err=True)
    write(output, figure, found(number).width)
    say(str(output))


def say_what_is_left(obtained: "Obtained", given: "Given") -> None:
    """Say what is missing and how to get it, what was not run and why."""
    from zsntta_cli.cli.hints import making_all

    if obtained.missing:
        count = sum(map(len, obtained.missing.values()))
        command = making_all(obtained.missing, given)
        say(f"note: {count} feature file{'s' * (count > 1)} missing: type {command}", err=True)
    if obtained.not_live:
        say(
            f"note: {len(obtained.not_live):,} live runs of {obtained.items_left:,} items were "
            "left out: --live runs them",
            err=True,
        )
