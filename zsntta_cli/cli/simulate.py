"""`zsntta simulate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zsntta_cli.cli.options import ENCODER, FEATURES, FeaturesDir, Model, Precision, Pretrained
from zsntta_cli.settings import METHOD_SETTINGS, EncoderChoice, LiveSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zsntta_cli.live.session import LiveSession
    from zsntta_cli.simulate import Record

Form = Literal["table", "markdown", "latex", "json", "csv"]


def _option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text)


def simulate(
    method: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(METHOD_SETTINGS)}.")
    ] = None,
    id_set: Annotated[list[str] | None, _option("ID set.", "--id")] = None,
    ood_set: Annotated[
        list[str] | None,
        _option("OOD set, or 'all' cached. Default: the cached partners.", "--ood"),
    ] = None,
    ratio: Annotated[list[float] | None, _option("OOD share, in [0, 1).")] = None,
    seed: Annotated[list[int] | None, _option("Order of the stream.")] = None,
    noise: Annotated[
        list[str] | None,
        _option("Injected noise, or 'none'. Default: gaussian for adand."),
    ] = None,
    noise_every: Annotated[list[int] | None, _option("M: one after M samples.")] = None,
    placement: Annotated[list[str] | None, _option("periodic or shuffled.")] = None,
    ood_fill: Annotated[list[str] | None, _option("Too few OOD: repeat or cap.")] = None,
    prompt: Annotated[list[str] | None, _option("Cached template, or 'code', 'paper'.")] = None,
    threshold: Annotated[
        list[str] | None, _option("adaptive, or a fixed ID score in [0, 1].")
    ] = None,
    queue: Annotated[list[int] | None, _option("N_q, scores it is found on.")] = None,
    criterion: Annotated[list[str] | None, _option("otsu or unweighted.")] = None,
    batch_size: Annotated[list[int] | None, _option("Items at once.")] = None,
    update_every: Annotated[list[int] | None, _option("L, the detector's queue.")] = None,
    warmup: Annotated[list[int] | None, _option("N, steps of stage 1.")] = None,
    learning_rate: Annotated[list[float] | None, _option("Of Adam.")] = None,
    pseudo_labels: Annotated[list[str] | None, _option("frozen or detector.")] = None,
    reevaluate: Annotated[
        list[bool] | None, _option("true: judge the update's last item after it.")
    ] = None,
    detector_init: Annotated[list[str] | None, _option("random or zero.")] = None,
    evidence: Annotated[list[float] | None, _option("Weight of ZS-CLIP's odds.")] = None,
    score_temperature: Annotated[list[float] | None, _option("Of its score.")] = None,
    pipeline: Annotated[
        list[str] | None, _option("Live methods adapt on: normal, gt or all.")
    ] = None,
    optimizer: Annotated[list[str] | None, _option("Tent: adam or sgd.")] = None,
    memory: Annotated[list[int] | None, _option("SoTTA: samples kept.")] = None,
    confidence: Annotated[list[float] | None, _option("SoTTA: least ID score.")] = None,
    views: Annotated[list[int] | None, _option("TPT: of an image.")] = None,
    limit: Annotated[list[int] | None, _option("Only the first so many samples.")] = None,
    words: Annotated[list[str] | None, _option("NegLabel: a cached word list.")] = None,
    no_text: Annotated[list[str] | None, _option("CLIPN: .npy of 'no' text features.")] = None,
    preset: Annotated[
        list[str] | None, typer.Option(help="paper, official (the released code) or tuned (ours).")
    ] = None,
    model: Model = ENCODER.model,
    pretrained: Pretrained = ENCODER.pretrained,
    precision: Precision = ENCODER.precision,
    encoder: Annotated[
        str | None, typer.Option(help="Folder of imported features, instead of --model.")
    ] = None,
    features_dir: FeaturesDir = FEATURES,
    data_root: Annotated[Path, typer.Option(help="Live methods: where data sets lie.")] = Path(
        "data"
    ),
    dataset: Annotated[
        list[str] | None, typer.Option(help="Live methods: NAME=PATH of a set's images.")
    ] = None,
    device: Annotated[str, typer.Option(help="Live methods: auto, cpu, cuda, cuda:1.")] = "auto",
    workers: Annotated[int, typer.Option(help="Live methods: threads that read images.")] = (
        LiveSettings().workers
    ),
    record: Annotated[
        Path | None, typer.Option("--from", help="Run again what these JSON records say.")
    ] = None,
    report: Annotated[Literal["accuracy", "ood"], typer.Option(help="What a table shows.")] = (
        "accuracy"
    ),
    form: Annotated[Form, typer.Option("--format", help="Of the result.")] = "table",
    output: Annotated[Path | None, typer.Option(help="Write to this file, whole or not.")] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Write the items of the (one) run: .csv or .h5.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
) -> None:
    """Replay streams from cached features; tent, sotta and tpt encode their images live.

    Options of a stream, a threshold or a method may be repeated: all combinations are run, seeds
    are folded into mean ± std.
    """
    if not method and record is None:
        raise typer.BadParameter(f"one of {', '.join(METHOD_SETTINGS)}.", param_hint="--method")
    from zsntta_cli import experiment
    from zsntta_cli.files import write_whole
    from zsntta_cli.formats import render
    from zsntta_cli.grid import Grid
    from zsntta_cli.report import KINDS

    axes: dict[str, Any] = {
        "ratio": ratio, "seed": seed, "noise": noise, "noise_every": noise_every,
        "placement": placement, "ood_fill": ood_fill, "fixed": threshold, "queue": queue,
        "criterion": criterion, "batch_size": batch_size, "update_every": update_every,
        "warmup": warmup, "learning_rate": learning_rate, "pseudo_labels": pseudo_labels,
        "reevaluate": reevaluate, "detector_init": detector_init, "evidence": evidence,
        "score_temperature": score_temperature, "pipeline": pipeline, "optimizer": optimizer,
        "memory": memory, "confidence": confidence, "views": views, "limit": limit,
        "words": words, "no_text": no_text,
    }  # fmt: skip
    choice = EncoderChoice(model, pretrained, precision, encoder)
    grid = Grid(method or (), choice, id_set or (), ood_set or (), prompt or (), preset or (), axes)
    live = LiveSettings(str(data_root), tuple(dataset or ()), device, workers)
    records = experiment.run(features_dir, grid, record, jobs, scores, lambda: live_session(live))
    for note in experiment.repeats(records):
        typer.echo(note, err=True)
    text = render(records, form, KINDS[report], to_file=output is not None)
    if output:
        write_whole(output, text.encode())
    else:
        typer.echo(text, nl=False)
    stop_if_unfinished(records)


def stop_if_unfinished(records: "Sequence[Record]") -> None:
    """End as Ctrl-C does, once the results up to it are out."""
    if any(record.unfinished for record in records):
        raise KeyboardInterrupt


def live_session(settings: LiveSettings) -> "LiveSession":
    """What live methods run in; it imports torch."""
    from zsntta_cli.encoder import wait_passively
    from zsntta_cli.progress import ConsoleReporter

    wait_passively()
    from zsntta_cli.live.session import LiveSession

    return LiveSession(settings, ConsoleReporter())
