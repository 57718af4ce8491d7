"""`zsntta replay`: whether the records of a bundle come out again."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import FeaturesDir, LiveOptions, with_groups
from zsntta_cli.cli.output import put
from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import FEATURES
from zsntta_cli.simulation import live_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zsntta_cli.results.exchange import RecordedRun
    from zsntta_cli.results.kept import Kept


@with_groups
def replay(
    *,
    file: Annotated[Path, typer.Argument(help="Bundle that `zsntta records bundle` wrote.")],
    features_dir: FeaturesDir = FEATURES,
    jobs: Annotated[int, typer.Option(help="Number of processes.")] = 1,
    run_plugins: Annotated[
        bool,
        typer.Option(
            "--run-plugins", help="Run the code of methods in the bundle; only if you trust it."
        ),
    ] = False,
    no_text: Annotated[
        str,
        typer.Option(
            help="File .npy of clipn's 'no' text features; a path in a record is never read."
        ),
    ] = "",
    live: LiveOptions,
) -> None:
    """Run a bundle's records again, and compare to the bit.

    The exit code is 1 if a run differs. The new results are not kept.
    """
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.forms import draw
    from zsntta_cli.report.reproduced import differing_sheet, summary
    from zsntta_cli.results.repeating import check_present, with_no_text
    from zsntta_cli.results.reproducing import as_recorded, reproduce

    with _runs(file, run_plugins) as runs:
        recorded = with_no_text([as_recorded(kept) for kept in runs], no_text)
        runs = [
            replace(kept, record=replace(kept.record, settings=run.settings))
            for kept, run in zip(runs, recorded, strict=True)
        ]
        check_present(features_dir, recorded)
        _tell_what_differs(features_dir, recorded)
        reporter = ConsoleReporter()
        session = partial(live_session, live.settings(None), reporter)
        reproductions = reproduce(features_dir, runs, jobs, session, reporter)
    differs = not all(each.is_exact for each in reproductions)
    table = draw([differing_sheet(reproductions)], "table") if differs else ""
    put(f"{table}{summary(reproductions)}\n", None)
    if len(reproductions) < len(runs):
        raise KeyboardInterrupt
    if differs:
        raise typer.Exit(1)


@contextlib.contextmanager
def _runs(file: Path, run_plugins: bool) -> "Iterator[Sequence[Kept]]":
    """The runs of a bundle, with the code of its methods at hand.

    Raises:
        SettingsError: it has code, and nobody said that it may be run.
        UnknownMethod: the code of a method is neither here nor in it.
    """
    from zsntta_cli.results.bundle import load_plugins, read_bundle
    from zsntta_cli.simulation.recorded import check_runnable

    bundle = read_bundle(file)
    names = ", ".join(bundle.plugins)
    if bundle.plugins and not run_plugins:
        raise SettingsError(
            f"{file} has code of its own ({names}), which nobody checked: read it (unzip -p {file} "
            f"'plugins/*'), and --run-plugins runs it."
        )
    with load_plugins(bundle):
        runs = read_bundle(file).runs if bundle.plugins else bundle.runs  # by the code of methods
        for kept in runs:
            own = kept.record.own
            check_runnable(kept.record.settings, own.files if own else ())
        yield runs


def _tell_what_differs(root: Path, runs: "Sequence[RecordedRun]") -> None:
    """Say which features and rules are not those that the records were made by."""
    from zsntta_cli.results.repeating import other_features
    from zsntta_cli.simulation.revision import revision

    for difference in other_features(root, runs):
        say(f"note: {difference}.", err=True)
    rules = {
        (run.settings.method, run.record.revision, revision(run.settings.method) or "")
        for run in runs
        if run.record
    }
    for method, there, here in sorted(rules):
        if there != here:
            say(f"note: {method} is of other rules or another source here.", err=True)
