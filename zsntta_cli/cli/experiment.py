"""`zsntta run`: an experiment file, whole: its runs, its tables, its figures."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import JobOptions, argument, option
from zsntta_cli.cli.output import command_line, form_of, say_notes
from zsntta_cli.cli.simulate import stop_if_unfinished
from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import LiveSettings, MachineSettings

if TYPE_CHECKING:
    from zsntta_cli.report.tables import View
    from zsntta_cli.results.experiment import Experiment


def run(
    *,
    ctx: typer.Context,
    file: Annotated[Path, argument(help="An experiment in TOML: docs/experiments.md.")],
    jobs: JobOptions,
    fresh: Annotated[
        bool, option("--fresh", help="Repeat runs that are kept from before.")
    ] = False,
    machine: MachineSettings,
) -> None:
    """Run what an experiment file says, and write its results.

    [bold]zsntta run experiment.toml --jobs 4[/bold]

    Results are tables and figures; runs that are kept are not made again.
    """
    from zsntta_cli.files import write_whole
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.forms import FORMS
    from zsntta_cli.report.tables import render
    from zsntta_cli.results.experiment import read_experiment
    from zsntta_cli.results.frame import chosen
    from zsntta_cli.results.runner import Runner
    from zsntta_cli.results.store import Keeping
    from zsntta_cli.simulation import LiveDevices
    from zsntta_cli.simulation.notes import notes_before

    experiment = read_experiment(file)
    ctx.params.update(_options(experiment))
    with _naming(file):
        tables = _tables(experiment)
        _check_figures(experiment)
        runs, notes = experiment.runs()
    root = experiment.features
    with_tables = list(zip(experiment.tables, tables, strict=True))
    if all(table.output or FORMS[form].of_rows for table, (form, _) in with_tables):
        notes += notes_before(root, runs)  # no table on stdout has them
    for note in notes:
        say(note, err=True)
    keeping = Keeping.beside(root, experiment.records, fresh, command_line())
    reporter = ConsoleReporter()
    sets = tuple(f"{name}={path}" for name, path in experiment.datasets.items())
    live = LiveSettings(experiment.data, sets, **vars(machine))
    session = LiveDevices(live, reporter)
    records = Runner(root, jobs.jobs, jobs.engine, session, reporter, keeping).run(runs)
    stop_if_unfinished(records)
    outputs: list[tuple[Path | None, bytes]] = []
    for table, (form, view) in with_tables:
        text = render(chosen(records, table.filters), form, view, to_file=table.output is not None)
        outputs.append((table.output, text.encode(errors="surrogateescape")))
    for request in experiment.figures:
        from zsntta_cli.report import figures

        figure = figures.plot(records, request.kind, request.filters, request.metric)
        say_notes(figure)
        outputs += figures.contents(request.output, figure, request.width)
    for output, content in outputs:  # once all of them are there
        if output:
            write_whole(output, content)
            say(str(output))
        else:
            typer.echo(content.decode(), nl=False)


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Name the file in what is wrong with it."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}") from error


def _options(experiment: "Experiment") -> dict[str, Any]:
    """What commands are to have that make what is missing."""
    choice = (experiment.blocks[0].encoder or experiment.encoder).choice
    named = {"encoder": choice.folder} if choice.folder else {
        "model": choice.model, "pretrained": choice.pretrained, "precision": choice.precision,
    }  # fmt: skip
    return {**named, "features_dir": experiment.features, "data_root": experiment.data}


def _tables(experiment: "Experiment") -> "list[tuple[str, View]]":
    """The form of each table, and what it shows, before anything is run.

    Raises:
        SettingsError: a form, a report, a metric or an ending that there is not.
    """
    from zsntta_cli.report.forms import ENDINGS, FORMS, TABLE
    from zsntta_cli.report.tables import View
    from zsntta_cli.results.frame import SEEDS, SETS
    from zsntta_cli.settings.options import check_choice
    from zsntta_cli.simulation.metrics import REPORTS

    tables = []
    for table in experiment.tables:
        if table.format:
            check_choice("format", table.format, tuple(FORMS))
        form = form_of(table.output, ENDINGS, table.format or None, TABLE, "output")
        check_choice("report", table.report, tuple(REPORTS))
        check_choice("spread", table.spread, (SEEDS, SETS))
        tables.append((form, View(**table.view, command=command_line())))
    return tables


def _check_figures(experiment: "Experiment") -> None:
    """Refuse figures that cannot be drawn, before anything is run.

    Raises:
        SettingsError: a kind, a metric or an ending that there is not.
    """
    for figure in experiment.figures:
        from zsntta_cli.report import figures
        from zsntta_cli.report.forms import FIGURE_ENDINGS
        from zsntta_cli.settings.options import check_choice
        from zsntta_cli.simulation.metrics import METRICS

        check_choice("kind", figure.kind, tuple(figures.KINDS))
        if figure.metric:
            allowed = tuple(figures.KINDS[figure.kind].metrics) or tuple(METRICS)
            check_choice("metric", figure.metric, allowed)
        form_of(figure.output, FIGURE_ENDINGS, option="output")
