"""`zsntta demo`: a comparison of methods on the built-in sets, offline."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import FEATURES_DIR, option
from zsntta_cli.cli.simulate import stop_if_unfinished
from zsntta_cli.settings import TINY, EncoderChoice, ExtractSettings, LiveSettings

if TYPE_CHECKING:
    from zsntta_cli.progress import Reporter
    from zsntta_cli.simulation.record import Record

_ENCODER = EncoderChoice(TINY)
_ID_SET = "shapes"
_RATIOS = (0.0, 0.05, 0.5)  # a clean stream, one as people have it, and the paper's
_METHODS = ("zs-clip", "adand", "cull")
_NOISE_COUNT = 5_000  # enough for 75 % noise, which people try next: one every 8 of 40,000

# AdaND's detector decides from its 1,280th item on, so the stream has to be longer than that.
NEXT_STEPS = (
    "Your images:    zsntta extract --model tiny --dataset mine=FOLDER\n"
    "Another stream: zsntta simulate --model tiny --method zs-clip,adand --ratio 0.4"
)
LIVE_LIMIT = 2_000
_LIVE_METHODS = ("zs-clip", "adand", "cull", "tent", "sotta", "tpt", "adand+tent")


def demo(
    features_dir: Path = FEATURES_DIR,
    live: bool = option(False, "Also run Tent, SoTTA and TPT, which takes minutes.", "--live"),
) -> None:
    """Compare methods offline, on the built-in sets.

    [bold]zsntta demo[/bold]

    [bold]zsntta demo --live[/bold]

    It runs ZS-CLIP, AdaND and cull with the embedded encoder.
    """
    from zsntta_cli.datasets import partners
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.extraction.plan import ExtractPlan, extract
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report import table

    reporter = ConsoleReporter()
    plan = ExtractPlan((_ID_SET, *partners(_ID_SET)), noise_count=_NOISE_COUNT)
    settings = ExtractSettings(batch_size=250, device="cpu", features_dir=features_dir)
    for extracted in extract(plan, _ENCODER, settings, reporter):
        say(summary(extracted), err=True)
    typer.echo(table(simulate(features_dir, _METHODS, {"ratio": _RATIOS})), nl=False)
    if live:
        typer.echo(f"With live methods, on the first {LIVE_LIMIT:,} samples of each stream:")
        records = simulate(features_dir, _LIVE_METHODS, {"limit": [LIVE_LIMIT]}, reporter)
        typer.echo(table(records), nl=False)
        stop_if_unfinished(records)
    typer.echo(NEXT_STEPS)


def simulate(
    root: Path,
    methods: Sequence[str],
    axes: Mapping[str, Sequence[Any]],
    reporter: "Reporter | None" = None,
) -> "list[Record]":
    """Run methods against each built-in OOD set; `reporter` shows the progress of live ones."""
    from zsntta_cli.cli.output import command_line
    from zsntta_cli.results.grid import Grid
    from zsntta_cli.results.runner import Runner
    from zsntta_cli.results.store import Keeping

    keeping = Keeping.beside(root, command=command_line())
    runs = Grid(methods, _ENCODER, axes=axes).runs(root)
    runner = Runner(root, keeping=keeping)
    if reporter:
        runner = replace(runner, live=LiveSettings(), reporter=reporter)
    return runner.run(runs)
