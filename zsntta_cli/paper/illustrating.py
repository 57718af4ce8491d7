"""A figure of the paper from its runs: made or taken from the store, beside what is published."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from zsntta_cli.cache.folder import folder_name
from zsntta_cli.errors import MissingSets
from zsntta_cli.methods import METHODS
from zsntta_cli.paper import files
from zsntta_cli.paper.estimates import Estimate, estimate
from zsntta_cli.paper.figures import PAPER, TINY, Bench, draw, figure_runs, found, published
from zsntta_cli.paper.standing import Machine
from zsntta_cli.paper.wanted import Wishes
from zsntta_cli.report.figure import Figure
from zsntta_cli.results.keeping import kept_before
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.obtain import run_all
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation.notes import notes
from zsntta_cli.simulation.runs import RunSettings


@dataclass(frozen=True)
class Illustration:
    """The runs of a figure that there are, and what is not in it."""

    number: int
    bench: Bench
    kept: Sequence[Kept]
    missing: dict[str, list[str]]  # sets without features, by the folder of their encoder
    not_live: Sequence[RunSettings]  # live runs that were not asked for
    root: Path  # of feature files

    def figure(self) -> Figure:
        """The figure of what there is; built-in sets are beside no published numbers.

        Raises:
            SettingsError: nothing to draw.
        """
        printed = published(self.number) if self.bench is PAPER else None
        return draw(self.number, self.kept, printed or None, self.bench)

    def live_time(self) -> Estimate:
        """How long the live runs would take that were left out."""
        return estimate(self.root, self.not_live, {})


def illustrate(number: int, wishes: Wishes, machine: Machine) -> Illustration:
    """Run what is not kept yet, live methods only where they may be.

    Raises:
        SettingsError: a figure that shows no results.
        MissingSets: not one run has all of its features.
    """
    encoder, bench = wishes.encoder, TINY if wishes.encoder.is_built_in else PAPER
    folder = folder_name(wishes.root, encoder.named or EncoderChoice())
    wanted = figure_runs(number, folder, bench)
    missing = files.missing(wishes.root, wanted)
    runs = files.runnable(wishes.root, wanted)
    if not runs:
        raise MissingSets(missing, str(wishes.root))
    for note in notes(wishes.root, runs):
        machine.reporter.note(note)
    left = _run(number, runs, wishes, machine)
    keeping = replace(machine.keeping, fresh=False, gradients=found(number).analysed)
    kept = list(kept_before(wishes.root, runs, keeping).values())
    return Illustration(number, bench, kept, missing, left, wishes.root)


def _run(
    number: int, runs: Sequence[RunSettings], wishes: Wishes, machine: Machine
) -> Sequence[RunSettings]:
    """Run what is to be run; the live runs that were left out."""
    keeping = replace(machine.keeping, gradients=found(number).analysed)
    replays = [run for run in runs if not METHODS[run.method].live]
    run_all(wishes.root, replays, machine.jobs, None, machine.reporter, keeping)
    live = [run for run in runs if METHODS[run.method].live]
    if machine.live is not None:
        run_all(wishes.root, live, 1, machine.live, machine.reporter, keeping)
        return []
    there = kept_before(wishes.root, live, replace(keeping, fresh=False))
    return [run for run in live if run not in there]
