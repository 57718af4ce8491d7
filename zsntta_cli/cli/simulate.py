"""`zsntta simulate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import (
    DATA,
    FEATURES,
    EncoderName,
    FeaturesDir,
    Model,
    Precision,
    Pretrained,
    chosen_encoder,
    given_settings,
    own_settings,
    with_settings,
)
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.settings import LiveSettings
from zsntta_cli.simulation.runs import PRESETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zsntta_cli.simulation.grid import Grid
    from zsntta_cli.simulation.live import LiveSession
    from zsntta_cli.simulation.record import Record
    from zsntta_cli.simulation.simulator import LiveFactory

Form = Literal["table", "markdown", "latex", "json", "csv"]
_METHODS = f"one of {', '.join(METHODS)}."


def _repeatable(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, metavar="NAME")


def _live(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel="Live methods")


def _result(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel="Result")


@with_settings
def simulate(
    method: Annotated[list[str] | None, _repeatable(_METHODS.capitalize())] = None,
    id_set: Annotated[
        list[str] | None, _repeatable("ID set. [cifar10; of tiny: shapes]", "--id")
    ] = None,
    ood_set: Annotated[
        list[str] | None,
        _repeatable("OOD set, or 'all' cached. [the cached partners]", "--ood"),
    ] = None,
    preset: Annotated[
        list[str] | None, _repeatable(f"{', '.join(PRESETS)}: see docs/methods.md. [paper]")
    ] = None,
    prompt: Annotated[
        list[str] | None, _repeatable("Cached template, or 'code', 'paper'. [the set's]")
    ] = None,
    own: Annotated[
        list[str] | None,
        _repeatable("For one method: METHOD.SETTING=VALUE.", "--set"),
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--from", help="Run again what these JSON records say.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    model: Model = None,
    pretrained: Pretrained = None,
    precision: Precision = None,
    encoder: EncoderName = None,
    features_dir: FeaturesDir = FEATURES,
    report: Annotated[Literal["accuracy", "ood"], _result("What a table shows.")] = "accuracy",
    form: Annotated[Form, _result("Of the result.", "--format")] = "table",
    output: Annotated[Path | None, _result("Write to this file, whole or not.")] = None,
    scores: Annotated[
        Path | None, _result("Write the items of the (one) run: .csv or .h5.")
    ] = None,
    data_root: Annotated[Path, _live("Where data sets lie.")] = DATA,
    dataset: Annotated[list[str] | None, _live("NAME=PATH of a set's images.")] = None,
    device: Annotated[str, _live("auto, cpu, cuda, cuda:1.")] = "auto",
    workers: Annotated[int, _live("Threads that read images.")] = LiveSettings().workers,
    **settings: Any,
) -> None:
    """Replay streams from cached features; tent, sotta and tpt encode their images live.

    What may be given several times is run in all combinations; seeds are folded into mean ± std.
    """
    if not method and record is None:
        raise typer.BadParameter(_METHODS, param_hint="--method")
    from zsntta_cli.files import check_target
    from zsntta_cli.report.formats import render
    from zsntta_cli.report.tables import KINDS
    from zsntta_cli.simulation.grid import Grid
    from zsntta_cli.simulation.record import repeats

    for target in filter(None, (output, scores)):
        check_target(target)  # before the runs, which may take long
    grid = Grid(
        method or (), chosen_encoder(model, pretrained, precision, encoder), id_set or (),
        ood_set or (), prompt or (), preset or (), given_settings(settings),
        own_settings(own or ()),
    )  # fmt: skip
    live = LiveSettings(str(data_root), tuple(dataset or ()), device, workers)
    records = _run(features_dir, grid, record, jobs, scores, lambda: live_session(live))
    for note in repeats(records):
        say(note, err=True)
    _write(render(records, form, KINDS[report], to_file=output is not None), output)
    stop_if_unfinished(records)


def _run(
    root: Path,
    grid: "Grid",
    record: Path | None,
    jobs: int,
    scores: Path | None,
    live: "LiveFactory",
) -> "Sequence[Record]":
    """The runs of a grid or of a record; the items of a single one are written to `scores`."""
    from zsntta_cli.simulation.batch import run_all
    from zsntta_cli.simulation.record import read_records

    before = read_records(record) if record else []
    runs = [old.settings for old in before] or grid.runs(root)
    replay = None
    if scores:
        if len(runs) != 1:
            raise SettingsError(f"scores are those of one run, and these options make {len(runs)}.")
        from zsntta_cli.simulation.simulator import Simulator

        replay = Simulator(root, live).replay(runs[0], analyse=True)
    records = [replay.record()] if replay else run_all(root, runs, jobs, live)
    for old, new in zip(before, records, strict=False):  # fewer records where Ctrl-C stopped them
        old.check(new)
    if scores and replay:
        from zsntta_cli.report.items import write_scores

        write_scores(scores, replay)
    return records


def _write(text: str, output: Path | None) -> None:
    if output:
        from zsntta_cli.files import write_whole

        write_whole(output, text.encode())
    else:
        typer.echo(text, nl=False)


def stop_if_unfinished(records: "Sequence[Record]") -> None:
    """End as Ctrl-C does, once the results up to it are out."""
    if any(record.unfinished for record in records):
        raise KeyboardInterrupt


def live_session(settings: LiveSettings) -> "LiveSession":
    """What live methods run in; it imports torch."""
    from zsntta_cli.encoders.clip import wait_passively
    from zsntta_cli.progress import ConsoleReporter

    wait_passively()
    from zsntta_cli.simulation.live import LiveSession

    return LiveSession(settings, ConsoleReporter())
