"""`zsntta demo`: the main job on the embedded encoder and the built-in sets, offline."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import FeaturesDir, option
from zsntta_cli.cli.simulate import stop_if_unfinished
from zsntta_cli.settings import FEATURES, TINY, EncoderChoice, ExtractSettings, LiveSettings

if TYPE_CHECKING:
    from zsntta_cli.extraction.extractor import Extracted
    from zsntta_cli.progress import Reporter
    from zsntta_cli.results.grid import Grid
    from zsntta_cli.simulation.record import Record
    from zsntta_cli.simulation.simulator import LiveFactory

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
_AXES = {"ratio": _RATIOS}


def demo(
    features_dir: FeaturesDir = FEATURES,
    live: Annotated[
        bool, option("--live", help="Also run Tent, SoTTA and TPT, which takes minutes.")
    ] = False,
) -> None:
    """Run the main job offline, on the embedded encoder.

    [bold]zsntta demo[/bold]

    [bold]zsntta demo --live[/bold]

    It compares ZS-CLIP, AdaND and cull on the built-in sets.
    """
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report import table
    from zsntta_cli.simulation import live_session

    reporter = ConsoleReporter()
    for extracted in extract_sets(features_dir, reporter):
        say(summary(extracted), err=True)
    typer.echo(table(simulate(features_dir)), nl=False)
    if live:
        typer.echo(f"With live methods, on the first {LIVE_LIMIT:,} samples of each stream:")
        records = simulate_live(features_dir, lambda: live_session(LiveSettings(), reporter))
        typer.echo(table(records), nl=False)
        stop_if_unfinished(records)
    typer.echo(NEXT_STEPS)


def extract_sets(root: Path, reporter: "Reporter") -> "Iterator[Extracted]":
    """Extract what the demo needs and is not there yet."""
    from zsntta_cli.datasets import partners
    from zsntta_cli.extraction.plan import ExtractPlan, extract

    plan = ExtractPlan((_ID_SET, *partners(_ID_SET)), noise_count=_NOISE_COUNT)
    settings = ExtractSettings(batch_size=250, device="cpu", features_dir=root)
    return extract(plan, _ENCODER, settings, reporter)


def simulate(root: Path) -> "list[Record]":
    """The runs of ZS-CLIP, AdaND and cull against each built-in OOD set."""
    return _run(root, _grid(_METHODS, _AXES))


def simulate_live(root: Path, live: "LiveFactory") -> "list[Record]":
    """The runs of all methods, with live encoder passes, on the first samples of each stream."""
    return _run(root, _live_grid(), live=live)


def _live_grid() -> "Grid":
    return _grid(_LIVE_METHODS, {"limit": [LIVE_LIMIT]})


def _grid(methods: tuple[str, ...], axes: dict[str, Any]) -> "Grid":
    from zsntta_cli.results.grid import Grid

    return Grid(methods, _ENCODER, axes=axes)


def _run(root: Path, grid: "Grid", **live: Any) -> "list[Record]":
    from zsntta_cli.cli.output import command_line
    from zsntta_cli.results.runner import run_all
    from zsntta_cli.results.store import Keeping

    keeping = Keeping.beside(root, command=command_line())
    return run_all(root, grid.runs(root), keeping=keeping, **live)
