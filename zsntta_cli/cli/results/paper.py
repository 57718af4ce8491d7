"""`zsntta paper`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli import completion
from zsntta_cli.cli.command import misused, say
from zsntta_cli.cli.options import (
    LIVE_WORKERS,
    EncoderName,
    FeaturesDir,
    Fresh,
    LiveDataRoot,
    LiveDatasets,
    LiveDevice,
    LiveWorkers,
    Model,
    Precision,
    Pretrained,
    Records,
    chosen_encoder,
    live_option,
    live_settings,
)
from zsntta_cli.cli.output import Form, form_of, put
from zsntta_cli.cli.results import figures
from zsntta_cli.paper.printed.tables import SAMPLES
from zsntta_cli.report.forms import ENDINGS
from zsntta_cli.settings import DATA, FEATURES, EncoderChoice, LiveSettings

if TYPE_CHECKING:
    from zsntta_cli.paper.printed.tables import Table
    from zsntta_cli.paper.standing import Machine, Standing
    from zsntta_cli.paper.wanted import Wishes


def paper(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            help="A table's number or label, or fig2 … fig9. [none: all that there are]"
        ),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="The paper's numbers alone: nothing is run.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="All tables, a line each: within, outside.")
    ] = False,
    preset: Annotated[
        str, typer.Option(help="paper or official.", autocompletion=completion.presets)
    ] = "paper",
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Several make a spread to judge by. [the table's own]", min=0),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes, of replays.")] = 1,
    model: Model = None,
    pretrained: Pretrained = None,
    precision: Precision = None,
    encoder: EncoderName = None,
    features_dir: FeaturesDir = FEATURES,
    records: Records = None,
    fresh: Fresh = False,
    form: Annotated[
        Form | None, typer.Option("--format", help="[by the output's ending, or table]")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write to this file, whole or not.")] = None,
    samples: Annotated[int, live_option("Of table 4's timing; the first warm up.")] = SAMPLES,
    live: Annotated[
        bool, live_option("Run live methods too, which may take days.", "--live")
    ] = False,
    data_root: LiveDataRoot = DATA,
    dataset: LiveDatasets = None,
    device: LiveDevice = "auto",
    workers: LiveWorkers = LIVE_WORKERS,
) -> None:
    """The paper's tables: measured, published, and whether the difference is more than chance.

    A table is run from cached features; what was run before is kept. Without a name: which tables
    there are, and what each needs.
    """
    from zsntta_cli.paper.printed.tables import figure_number, find_table

    named = any(value is not None for value in (model, pretrained, precision, encoder))
    choice = chosen_encoder(model, pretrained, precision, encoder) if named else None
    _check_usage(name, published, check, output or form not in (None, "table"), named)
    figure = figure_number(name) if name is not None else None
    if figure and form:
        raise misused("--format is of tables: the ending of --output says what a figure is.")
    if figure:
        from zsntta_cli.report import plots

        drawn = output or Path(f"fig{figure}.pdf")
        plots.check_drawable(form_of(drawn, plots.FORMS))
    else:
        shown = _Shown(form_of(output, ENDINGS, form, "table"), output)
    if published:
        if figure:
            figures.show_published(figure, drawn)
        else:
            _show_published(find_table(str(name)), shown)
        return
    from zsntta_cli.results.keeping import Keeping

    wishes = _wishes(features_dir, choice, preset, seed or ())
    keeping = Keeping.beside(features_dir, records, fresh)
    settings = live_settings(choice, data_root, dataset, device, workers)
    if name is None and not check:
        _show_overview(wishes, keeping)
        return
    machine = replace(_machine(keeping, jobs, settings if live else None), samples=samples)
    if check:
        _show_check(wishes, machine, ctx.params)
    elif figure:
        figures.show(figure, wishes, machine, drawn, ctx.params)
    else:
        _show_table(find_table(str(name)), wishes, machine, shown, ctx.params)


@dataclass(frozen=True)
class _Shown:
    """How a table is shown, and where."""

    form: str
    output: Path | None


def _check_usage(name: str | None, published: bool, check: bool, of_one: Any, named: bool) -> None:
    """Refuse options that contradict each other, before anything is read.

    Raises:
        UsageError: which option, and why.
    """
    if published and name is None:
        raise misused("--published shows a table: name it, as in zsntta paper 2 --published.")
    if published and (check or named):
        other = "check" if check else "model, or another encoder"
        raise misused(f"--published shows what is printed: leave --{other} out.")
    if check and name is not None:
        raise misused(f"--check is of all tables: leave '{name}' out.")
    if name is None and of_one:
        raise misused("--format and --output are of one table: name it, as in zsntta paper 2.")


def _wishes(
    root: Path, choice: EncoderChoice | None, preset: str, seeds: Sequence[int]
) -> "Wishes":
    from zsntta_cli.paper.cells import Encoder
    from zsntta_cli.paper.wanted import Wishes
    from zsntta_cli.settings.options import check_choice
    from zsntta_cli.simulation.runs import PRESETS

    check_choice("preset", preset, tuple(PRESETS))
    return Wishes(root, Encoder(choice), preset, tuple(dict.fromkeys(seeds)))


def _machine(keeping: Any, jobs: int, live: LiveSettings | None) -> "Machine":
    from zsntta_cli.paper.standing import Machine
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.simulation import live_session

    reporter = ConsoleReporter()
    if live is None:
        return Machine(reporter, keeping, jobs)
    return Machine(reporter, keeping, jobs, lambda: live_session(live, reporter), live.device)


def _show_published(table: "Table", shown: _Shown) -> None:
    from zsntta_cli.paper.layout.pages import published_text

    put(published_text(table, shown.form, shown.output is not None), shown.output)


def _show_overview(wishes: "Wishes", keeping: Any) -> None:
    from zsntta_cli.paper.overview import drawn, overview, totals
    from zsntta_cli.progress import console

    found = overview(wishes, keeping)
    for one in drawn(found):
        console().print(one)
    for line in totals(found):
        say(line)


def _show_table(
    table: "Table", wishes: "Wishes", machine: "Machine", shown: _Shown, given: Any
) -> None:
    from zsntta_cli.paper.layout.pages import published_text, text
    from zsntta_cli.paper.standing import stand

    if not table.is_measured:
        put(published_text(table, shown.form, shown.output is not None), shown.output)
        return
    standing = stand([table], wishes, machine)
    figures.say_what_is_left(standing, given)
    found = standing.compared(table)
    to_file = shown.output is not None
    put(text(table, found, standing.said(table), shown.form, to_file), shown.output)
    _stop_if(standing)


def _show_check(wishes: "Wishes", machine: "Machine", given: Any) -> None:
    from zsntta_cli.paper.layout.pages import check_lines
    from zsntta_cli.paper.printed.tables import TABLES
    from zsntta_cli.paper.standing import stand

    measured = [table for table in TABLES if table.is_measured]
    standing = stand(measured, wishes, machine)
    figures.say_what_is_left(standing, given)
    for line in check_lines({table: standing.compared(table) for table in measured}):
        say(line)
    _stop_if(standing)


def _stop_if(standing: "Standing") -> None:
    """End as Ctrl-C does, once the results up to it are out."""
    if standing.unfinished:
        raise KeyboardInterrupt
