"""The command line: parses, builds settings, calls one library function, prints."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from zsntta_cli import __version__
from zsntta_cli.errors import ZsnttaError
from zsntta_cli.settings import EncoderChoice, ExtractSettings


class _Commands(TyperGroup):
    """All errors a user can cause become one line here, and nowhere else."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; exit with 1 on a ZsnttaError, with 130 on Ctrl-C."""
        try:
            return super().invoke(ctx)
        except ZsnttaError as error:
            if ctx.params.get("debug"):
                raise
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            typer.echo(
                "interrupted: what was finished is kept; the same command resumes.", err=True
            )
            raise typer.Exit(130) from error


app = typer.Typer(
    cls=_Commands,
    help="Zero-shot noisy test-time adaptation of CLIP: extract features once, replay streams.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Model = Annotated[str, typer.Option(help="open_clip model name; 'tiny' is the embedded encoder.")]
Pretrained = Annotated[
    str, typer.Option(help="Weights: open_clip tag, path of a checkpoint, or 'none' (random).")
]
Precision = Annotated[str, typer.Option(help="fp32, fp16 or bf16.")]
FeaturesDir = Annotated[Path, typer.Option(help="Where feature files lie.")]

_ENCODER = EncoderChoice()
_EXTRACT = ExtractSettings()
_FEATURES = Path("features")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"zsntta {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks of errors.")] = False,  # noqa: ARG001
) -> None:
    pass


@app.command()
def extract(
    dataset: Annotated[
        list[str], typer.Option(help="A known set, or a folder of images as NAME=PATH. Repeatable.")
    ],
    model: Model = _ENCODER.model,
    pretrained: Pretrained = _ENCODER.pretrained,
    precision: Precision = _ENCODER.precision,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")] = "auto",
    batch_size: Annotated[int, typer.Option(help="Images to an encoder pass.")] = (
        _EXTRACT.batch_size
    ),
    workers: Annotated[int, typer.Option(help="Threads that read images.")] = _EXTRACT.workers,
    data_root: Annotated[Path, typer.Option(help="Where data sets lie or are downloaded.")] = Path(
        "data"
    ),
    features_dir: FeaturesDir = _FEATURES,
    limit: Annotated[int | None, typer.Option(help="At most so many images a set.")] = None,
    prompt: Annotated[
        list[str] | None, typer.Option(help="Template with one {}, or 'code', 'paper'. Repeatable.")
    ] = None,
    noise: Annotated[
        list[str] | None,
        typer.Option(help="Noise images to encode too, or 'none'. Default: gaussian for ID sets."),
    ] = None,
    noise_count: Annotated[
        int | None, typer.Option(help="Noise images to a type. Default: a quarter of the ID set.")
    ] = None,
    partners: Annotated[
        bool, typer.Option(help="Without an OOD set named: also extract the ID set's partners.")
    ] = True,
    skip_broken: Annotated[bool, typer.Option(help="Leave unreadable images out.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace files made from other images.")] = False,
) -> None:
    """Encode data sets once: image features, class text features and noise images to HDF5."""
    from zsntta_cli import workflow
    from zsntta_cli.progress import ConsoleReporter

    plan = workflow.ExtractPlan(
        tuple(dataset), data_root, limit, tuple(prompt or ()), tuple(noise) if noise else None,
        noise_count, partners,
    )  # fmt: skip
    choice = EncoderChoice(model, pretrained, precision)
    settings = ExtractSettings(batch_size, workers, skip_broken, overwrite)
    reporter = ConsoleReporter()
    for extracted in workflow.extract(plan, choice, device, features_dir, settings, reporter):
        typer.echo(workflow.summary(extracted))


@app.command()
def simulate(
    method: Annotated[list[str], typer.Option(help="zs-clip or adand. Repeatable.")],
    id_set: Annotated[list[str] | None, typer.Option("--id", help="ID set. Repeatable.")] = None,
    ood_set: Annotated[
        list[str] | None,
        typer.Option("--ood", help="OOD set. Repeatable. Default: the ID set's cached partners."),
    ] = None,
    ratio: Annotated[
        list[float] | None, typer.Option(help="Noise ratio: OOD share in [0, 1). Repeatable.")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Order of the stream. Repeatable.")] = None,
    noise: Annotated[
        list[str] | None,
        typer.Option(help="Injected noise, or 'none'. Default: gaussian for adand. Repeatable."),
    ] = None,
    noise_every: Annotated[
        list[int] | None, typer.Option(help="One noise image after M samples. Repeatable.")
    ] = None,
    prompt: Annotated[
        list[str] | None, typer.Option(help="Cached prompt template, 'code' or 'paper'.")
    ] = None,
    preset: Annotated[
        str, typer.Option(help="paper, or official: as the released code.")
    ] = "paper",
    model: Model = _ENCODER.model,
    pretrained: Pretrained = _ENCODER.pretrained,
    precision: Precision = _ENCODER.precision,
    features_dir: FeaturesDir = _FEATURES,
    form: Annotated[
        Literal["table", "json", "csv"], typer.Option("--format", help="Of the result.")
    ] = "table",
    output: Annotated[Path | None, typer.Option(help="Write to this file, whole or not.")] = None,
) -> None:
    """Replay streams from cached features and print Acc_S, Acc_N and Acc_H."""
    from zsntta_cli.grid import Grid
    from zsntta_cli.report import render
    from zsntta_cli.simulate import Simulator
    from zsntta_cli.store import write_whole

    encoder = EncoderChoice(model, pretrained, precision)
    axes: dict[str, Any] = {
        "ratio": ratio,
        "seed": seed,
        "noise": noise,
        "noise_every": noise_every,
    }
    grid = Grid(method, encoder, id_set or (), ood_set or (), prompt or (), preset, axes)
    simulator = Simulator(features_dir, encoder.options)
    records = [simulator.run(settings) for settings in grid.runs(features_dir)]
    text = render(records, form, to_file=output is not None)
    if output:
        write_whole(output, text.encode())
    else:
        typer.echo(text, nl=False)


@app.command()
def demo(features_dir: FeaturesDir = _FEATURES) -> None:
    """The main job offline: embedded encoder, built-in sets, ZS-CLIP against AdaND."""
    from zsntta_cli import demo as job
    from zsntta_cli import workflow
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report import render

    for extracted in job.extract_sets(features_dir, ConsoleReporter()):
        typer.echo(workflow.summary(extracted), err=True)
    typer.echo(render(job.simulate(features_dir), "table"), nl=False)
    typer.echo(job.NEXT_STEPS)


def main() -> None:
    """The entry point."""
    app()
