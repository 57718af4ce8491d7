"""`zsntta paper`."""

import shlex
import sys
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
    from zsntta_cli.paper.printed.tables import PaperTable
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.paper.sheets import TableContent
    from zsntta_cli.paper.standing import Execution, Obtained


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
    execution = replace(_execution(keeping, jobs, settings if live else None), samples=samples)
    if check:
        _show_check(wishes, execution, ctx.params)
    elif figure:
        figures.show(figure, wishes, execution, drawn, ctx.params)
    else:
        _show_table(find_table(str(name)), wishes, execution, shown, ctx.params)


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
    from zsntta_cli.paper.cells import PaperEncoder
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.settings.options import check_choice
    from zsntta_cli.simulation.runs import PRESETS

    check_choice("preset", preset, tuple(PRESETS))
    return Wishes(root, PaperEncoder(choice), preset, tuple(dict.fromkeys(seeds)))


def _execution(keeping: Any, jobs: int, live: LiveSettings | None) -> "Execution":
    from zsntta_cli.paper.standing import Execution
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.simulation import live_session

    reporter = ConsoleReporter()
    if live is None:
        return Execution(reporter, keeping, jobs)
    return Execution(reporter, keeping, jobs, lambda: live_session(live, reporter), live.device)


def _show_published(table: "PaperTable", shown: _Shown) -> None:
    from zsntta_cli.paper.sheets import published_content

    _show(published_content(table, _command()), shown)


def _show(content: "TableContent", shown: _Shown) -> None:
    from zsntta_cli.paper.sheets import render

    put(render(content, shown.form, shown.output is not None), shown.output)


def _command() -> str:
    return shlex.join(["zsntta", *sys.argv[1:]])


def _show_overview(wishes: "Wishes", keeping: Any) -> None:
    from zsntta_cli.paper.overview import draw, look_over, totals
    from zsntta_cli.progress import console

    overview = look_over(wishes, keeping)
    for table in draw(overview):
        console().print(table)
    for line in totals(overview):
        say(line)


def _show_table(
    table: "PaperTable", wishes: "Wishes", execution: "Execution", shown: _Shown, given: Any
) -> None:
    from zsntta_cli.paper.standing import stand

    if not table.is_measured:
        _show_published(table, shown)
        return
    standing = stand([table], wishes, execution)
    figures.say_what_is_left(standing, given)
    _show(standing.content(table, _command()), shown)
    _stop_if(standing)


def _show_check(wishes: "Wishes", execution: "Execution", given: Any) -> None:
    from zsntta_cli.paper.printed.tables import TABLES
    from zsntta_cli.paper.sheets import check_lines
    from zsntta_cli.paper.standing import stand

    measured = [table for table in TABLES if table.is_measured]
    standing = stand(measured, wishes, execution)
    figures.say_what_is_left(standing, given)
    for line in check_lines({table: standing.content(table).comparisons for table in measured}):
        say(line)
    _stop_if(standing)


def _stop_if(obtained: "Obtained") -> None:
    """End as Ctrl-C does, once the results up to it are out."""
    if obtained.unfinished:
        raise KeyboardInterrupt
