"""`zsntta run`: an experiment file, whole: its runs, its tables, its figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import JobOptions, argument, option
from zsntta_cli.cli.output import command_line, form_of, say_notes
from zsntta_cli.cli.simulate import stop_if_unfinished
from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import LiveSettings
from zsntta_cli.simulation.runs import RunSettings

if TYPE_CHECKING:
    from zsntta_cli.report.tables import View
    from zsntta_cli.results.experiment import Experiment, TableRequest
    from zsntta_cli.results.runner import Jobs
    from zsntta_cli.results.store import Keeping
    from zsntta_cli.simulation.record import Record

_TABLE = "table"


def run(
    *,
    ctx: typer.Context,
    file: Annotated[Path, argument(help="An experiment in TOML: docs/experiments.md.")],
    jobs: JobOptions,
    fresh: Annotated[
        bool, option("--fresh", help="Repeat runs that are kept from before.")
    ] = False,
    device: Annotated[
        str, option(help="Device of live methods: auto, cpu, cuda, cuda:1.")
    ] = "auto",
    workers: Annotated[int, option(help="Threads that read images for live methods.")] = (
        LiveSettings().workers
    ),
) -> None:
    """Run what an experiment file says, and write its results.

    [bold]zsntta run experiment.toml --jobs 4[/bold]

    Results are tables and figures; runs that are kept are not made again.
    """
    from zsntta_cli.report.forms import FORMS
    from zsntta_cli.results.experiment import read_experiment
    from zsntta_cli.results.store import Keeping

    experiment = read_experiment(file)
    ctx.params.update(_options(experiment))
    views = [_view(table, file) for table in experiment.tables]
    _check_figures(experiment)
    runs = experiment.runs()
    grids = [block.grid for block in experiment.blocks]
    for note in dict.fromkeys(n for grid in grids for n in grid.notes(experiment.features)):
        say(note, err=True)
    is_named = experiment.records is not None
    path, command = experiment.records_path, command_line()
    keeping = Keeping(path, fresh, required=is_named, command=command)
    if all(table.output or FORMS[table.format or _TABLE].of_rows for table in experiment.tables):
        _tell_notes(experiment.features, runs)
    live = LiveSettings(str(experiment.data), experiment.sets, device, workers)
    kept_runs = _kept_runs(experiment, runs, jobs.chosen(), live, keeping)
    outputs = _tables(experiment.tables, views, kept_runs) + _figures(experiment, kept_runs)
    _put_all(outputs)


def _options(experiment: "Experiment") -> dict[str, Any]:
    """What commands are to have that make what is missing."""
    choice = experiment.blocks[0].encoder
    named = {"encoder": choice.folder} if choice.folder else {
        "model": choice.model, "pretrained": choice.pretrained, "precision": choice.precision,
    }  # fmt: skip
    return {**named, "features_dir": experiment.features, "data_root": experiment.data}


def _view(table: "TableRequest", file: Path) -> "View":
    """What a table shows, checked before anything is run.

    Raises:
        SettingsError: a form, a report, a metric or an ending that there is not.
    """
    from zsntta_cli.report.forms import ENDINGS, FORMS
    from zsntta_cli.report.tables import View
    from zsntta_cli.results.frame import SEEDS, SETS
    from zsntta_cli.settings.options import check_choice
    from zsntta_cli.simulation.metrics import REPORTS

    if table.format:
        check_choice(f"{file}: format", table.format, tuple(FORMS))
    _form_of(file, table.output, ENDINGS, table.format or None, _TABLE)
    view = View(**table.view, command=command_line())
    check_choice(f"{file}: report", view.report, tuple(REPORTS))
    check_choice(f"{file}: spread", view.spread, (SEEDS, SETS))
    try:
        _ = view.shown
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}") from error
    return view


def _form_of(
    file: Path,
    output: Path | None,
    forms: Mapping[str, str],
    named: str | None = None,
    default: str = "",
) -> str:
    """The form of a result, where not the command line but a file asks for it.

    Raises:
        SettingsError: the ending is that of no form, or of another one than is named.
    """
    return form_of(
        output, forms, named, default, option="output", named_by="format",
        refusal=lambda words: SettingsError(f"{file}: {words}"),
    )  # fmt: skip


def _check_figures(experiment: "Experiment") -> None:
    """Refuse figures that cannot be drawn, before anything is run.

    Raises:
        SettingsError: a kind, a metric or an ending that there is not.
    """
    if not experiment.figures:
        return
    from zsntta_cli.report import figures
    from zsntta_cli.report.forms import FIGURE_ENDINGS
    from zsntta_cli.settings.options import check_choice
    from zsntta_cli.simulation.metrics import METRICS

    for figure in experiment.figures:
        check_choice(f"{experiment.path}: kind", figure.kind, tuple(figures.KINDS))
        if figure.metric:
            allowed = tuple(figures.KINDS[figure.kind].metrics) or tuple(METRICS)
            check_choice(f"{experiment.path}: metric", figure.metric, allowed)
        _form_of(experiment.path, figure.output, FIGURE_ENDINGS)


def _tell_notes(root: Path, runs: "Sequence[RunSettings]") -> None:
    """Say on stderr what is to be known of runs, where no table on stdout has it."""
    from zsntta_cli.simulation.notes import notes_before

    for note in notes_before(root, runs):
        say(note, err=True)


def _kept_runs(
    experiment: "Experiment",
    runs: "Sequence[RunSettings]",
    jobs: "Jobs",
    live: LiveSettings,
    keeping: "Keeping",
) -> "list[Record]":
    """The results of all runs with their curves, made or taken from the store."""
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.results.runner import run_all
    from zsntta_cli.simulation import LiveDevices

    reporter, root = ConsoleReporter(), experiment.features
    records = run_all(root, runs, jobs, LiveDevices(live, reporter), reporter, keeping)
    stop_if_unfinished(records)
    return records


def _tables(
    requests: "Sequence[TableRequest]", views: "Sequence[View]", kept_runs: "Sequence[Record]"
) -> list[tuple[Path | None, bytes]]:
    """All tables as they are to be written."""
    from zsntta_cli.report.forms import ENDINGS
    from zsntta_cli.report.tables import render
    from zsntta_cli.results.frame import chosen

    outputs: list[tuple[Path | None, bytes]] = []
    for request, view in zip(requests, views, strict=True):
        form = form_of(request.output, ENDINGS, request.format or None, _TABLE)
        runs = chosen(kept_runs, request.filters)
        text = render(runs, form, view, to_file=request.output is not None)
        outputs.append((request.output, text.encode(errors="surrogateescape")))
    return outputs


def _figures(
    experiment: "Experiment", kept_runs: "Sequence[Record]"
) -> list[tuple[Path | None, bytes]]:
    """All figures as they are to be written."""
    outputs: list[tuple[Path | None, bytes]] = []
    for request in experiment.figures:
        from zsntta_cli.report import figures

        figure = figures.plot(kept_runs, request.kind, request.filters, request.metric)
        say_notes(figure)
        outputs += figures.contents(request.output, figure, request.width)
    return outputs


def _put_all(outputs: Sequence[tuple[Path | None, bytes]]) -> None:
    """Write what was made, each file whole, once all of it is there."""
    from zsntta_cli.files import write_whole

    for output, content in outputs:
        if output:
            write_whole(output, content)
            say(str(output))
        else:
            typer.echo(content.decode(), nl=False)
