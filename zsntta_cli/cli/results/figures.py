"""What `zsntta paper fig2` shows, and what is said of tables and figures that are not whole."""

from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli.cli.command import misused, say

if TYPE_CHECKING:
    from zsntta_cli.cli.hints import Given
    from zsntta_cli.paper.illustrating import Illustration
    from zsntta_cli.paper.standing import Machine, Standing
    from zsntta_cli.paper.wanted import Wishes
    from zsntta_cli.report.figure import Figure


def show(number: int, wishes: "Wishes", machine: "Machine", output: Path, given: "Given") -> None:
    """Draw a figure of the paper from its runs."""
    from zsntta_cli.paper.illustrating import illustrate

    made = illustrate(number, wishes, machine)
    say_what_is_left(made, given)
    _write(number, made.figure(), output)


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


def say_what_is_left(standing: "Standing | Illustration", given: "Given") -> None:
    """What is missing and how to get it; what was not run and why."""
    from zsntta_cli.cli.hints import making_all

    if standing.missing:
        count = sum(map(len, standing.missing.values()))
        command = making_all(standing.missing, given)
        say(f"note: {count} feature file{'s' * (count > 1)} missing: type {command}", err=True)
    if standing.not_live:
        time = standing.live_time()
        say(
            f"note: {len(standing.not_live):,} live runs of {time.items:,} items were left out: "
            f"--live runs them, about {time.text} {time.source}",
            err=True,
        )
