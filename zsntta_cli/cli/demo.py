"""`zsntta demo`: a comparison of methods on the built-in sets, offline."""

from pathlib import Path

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import FEATURES_DIR
from zsntta_cli.settings import TINY, EncoderChoice, ExtractSettings

_ID_SET = "shapes"
_RATIOS = (0.0, 0.05, 0.5)  # a clean stream, one as people have it, and the paper's
_METHODS = ("zs-clip", "adand", "cull")
_NOISE_COUNT = 5_000  # enough for 75 % noise, which people try next: one every 8 of 40,000

# AdaND's detector decides from its 1,280th item on, so the stream has to be longer than that.
NEXT_STEPS = (
    "Your images:    zsntta extract --model tiny --dataset mine=FOLDER\n"
    "Another stream: zsntta simulate --model tiny --method zs-clip,adand --ratio 0.4"
)


def demo(features_dir: Path = FEATURES_DIR) -> None:
    """Compare methods offline, on the built-in sets.

    [bold]zsntta demo[/bold]

    It runs ZS-CLIP, AdaND and cull with the embedded encoder.
    """
    from zsntta_cli.cli.output import command_line
    from zsntta_cli.datasets import partners
    from zsntta_cli.extraction.plan import ExtractPlan, extract
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report import table
    from zsntta_cli.results.grid import Grid
    from zsntta_cli.results.runner import Runner
    from zsntta_cli.results.store import Keeping

    encoder = EncoderChoice(TINY)
    plan = ExtractPlan((_ID_SET, *partners(_ID_SET)), noise_count=_NOISE_COUNT)
    settings = ExtractSettings(batch_size=250, device="cpu", features_dir=features_dir)
    for extracted in extract(plan, encoder, settings, ConsoleReporter()):
        say(extracted.line, err=True)
    runs = Grid(_METHODS, encoder, axes={"ratio": _RATIOS}).runs(features_dir)
    keeping = Keeping.beside(features_dir, command=command_line())
    typer.echo(table(Runner(features_dir, keeping=keeping).run(runs)), nl=False)
    typer.echo(NEXT_STEPS)
