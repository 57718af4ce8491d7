"""`zsntta demo`."""

from typing import Annotated

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.hints import NEXT_STEPS
from zsntta_cli.cli.options import FeaturesDir
from zsntta_cli.cli.simulate import stop_if_unfinished
from zsntta_cli.settings import FEATURES, LiveSettings


def demo(
    features_dir: FeaturesDir = FEATURES,
    live: Annotated[bool, typer.Option("--live", help="Tent, SoTTA and TPT too: minutes.")] = False,
) -> None:
    """The main job offline: embedded encoder, built-in sets, ZS-CLIP, AdaND and ridge."""
    from zsntta_cli.cli import demonstration as job
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report import table
    from zsntta_cli.simulation import live_session

    reporter = ConsoleReporter()
    for extracted in job.extract_sets(features_dir, reporter):
        say(summary(extracted), err=True)
    typer.echo(table(job.simulate(features_dir)), nl=False)
    if live:
        typer.echo(f"With live methods, on the first {job.LIVE_LIMIT:,} samples of each stream:")
        records = job.simulate_live(features_dir, lambda: live_session(LiveSettings(), reporter))
        typer.echo(table(records), nl=False)
        stop_if_unfinished(records)
    typer.echo(NEXT_STEPS)
