"""`zsntta simulate`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from zsntta_cli.cli.options import ENCODER, FEATURES, FeaturesDir, Model, Precision, Pretrained
from zsntta_cli.settings import EncoderChoice


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
    model: Model = ENCODER.model,
    pretrained: Pretrained = ENCODER.pretrained,
    precision: Precision = ENCODER.precision,
    features_dir: FeaturesDir = FEATURES,
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
