"""`zsntta run`: an experiment file with its runs, its tables and its figures."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import FRESH, JobOptions, argument
from zsntta_cli.cli.output import TableOutput, command_line, form_of, say_notes
from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import LiveSettings, MachineSettings
from zsntta_cli.settings.options import check_choice

if TYPE_CHECKING:
    from zsntta_cli.report.tables import View
    from zsntta_cli.results.experiment import Experiment


def run(
    *,
    ctx: typer.Context,
    file: Path = argument(..., "Experiment file in TOML (docs/experiments.md)."),
    jobs: JobOptions,
    fresh: bool = FRESH,
    machine: MachineSettings,
) -> None:
    """Run an experiment file and write its tables and figures.

    [bold]zsntta run experiment.toml --jobs 4[/bold]

    Finished runs are kept and not repeated.
    """
    from zsntta_cli.files import write_whole
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.tables import render
    from zsntta_cli.results.experiment import read_experiment
    from zsntta_cli.results.runner import Runner
    from zsntta_cli.results.selection import chosen
    from zsntta_cli.results.store import Keeping
    from zsntta_cli.simulation.notes import notes_before

    experiment = read_experiment(file)
    choice = experiment.blocks[0].encoder or experiment.encoder
    ctx.params.update(  # for proposed commands
        features_dir=experiment.features, data_root=experiment.data, encoder=choice.folder,
        model=choice.model, pretrained=choice.pretrained, precision=choice.precision,
    )  # fmt: skip
    try:
        tables = _checked(experiment)
        runs, notes = experiment.runs()
    except SettingsError as error:
        raise SettingsError(f"{file}: {str(error).removeprefix('--')}") from error
    root = experiment.features
    if not any(output.has_notes for output, _ in tables):
        notes += notes_before(root, runs)  # no table on stdout has them
    for note in notes:
        say(note, err=True)
    keeping = Keeping.beside(root, experiment.records, fresh, command_line())
    sets = tuple(f"{name}={path}" for name, path in experiment.datasets.items())
    live, reporter = LiveSettings(experiment.data, sets, **vars(machine)), ConsoleReporter()
    records = Runner(root, jobs.jobs, jobs.engine, live, reporter, keeping).run(runs)
    if any(record.unfinished for record in records):
        raise KeyboardInterrupt
    written: list[tuple[Path | None, bytes]] = []
    for request, (output, view) in zip(experiment.tables, tables, strict=True):
        text = render(
            chosen(records, request.filters), output.form or "", view, output.output is not None
        )
        written.append((output.output, text.encode(errors="surrogateescape")))
    for wanted in experiment.figures:
        from zsntta_cli.report import figures

        figure = figures.plot(records, wanted.kind, wanted.filters, wanted.metric)
        say_notes(figure)
        written += figures.contents(wanted.output, figure, wanted.width)
    for path, content in written:  # once all of them are there
        if path:
            write_whole(path, content)
            say(str(path))
        else:
            typer.echo(content.decode(), nl=False)


def _checked(experiment: "Experiment") -> "list[tuple[TableOutput, View]]":
    """Where each table goes, and what it shows, before anything is run.

    Raises:
        SettingsError: an unknown format, report, kind of figure, metric or ending.
    """
    from zsntta_cli.report.tables import View
    from zsntta_cli.results.frame import SEEDS, SETS
    from zsntta_cli.simulation.metrics import METRICS, REPORTS

    tables = []
    for table in experiment.tables:
        check_choice("report", table.report, tuple(REPORTS))
        check_choice("spread", table.spread, (SEEDS, SETS))
        output = TableOutput(table.format or None, table.output)
        view = View(
            table.report, table.spread, tuple(table.columns), table.names, table.aggregate,
            table.caption, table.label, command_line(),
        )  # fmt: skip
        tables.append((output, view))
    for figure in experiment.figures:
        from zsntta_cli.report import figures
        from zsntta_cli.report.forms import FIGURE_ENDINGS

        check_choice("kind", figure.kind, tuple(figures.KINDS))
        if figure.metric:
            allowed = tuple(figures.KINDS[figure.kind].metrics) or tuple(METRICS)
            check_choice("metric", figure.metric, allowed)
        form_of(figure.output, FIGURE_ENDINGS, option="output")
    return tables
