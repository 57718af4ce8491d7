"""`zsntta paper`."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli import completion
from zsntta_cli.cli.command import misused, say
from zsntta_cli.cli.dry import DryRun, say_foresight
from zsntta_cli.cli.options import (
    EncoderOptions,
    FeaturesDir,
    KeepingOptions,
    LiveOptions,
    live_option,
    with_groups,
)
from zsntta_cli.cli.output import Form, command_line, form_of, put, put_figure
from zsntta_cli.paper.printed.tables import SAMPLES
from zsntta_cli.report.forms import ENDINGS
from zsntta_cli.settings import FEATURES, LiveSettings
from zsntta_cli.settings.options import check_choice
from zsntta_cli.simulation.runs import PRESETS

if TYPE_CHECKING:
    from zsntta_cli.cli.hints import Given
    from zsntta_cli.paper.printed.tables import PaperTable
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.paper.sheets import TableContent
    from zsntta_cli.paper.standing import Execution, Obtained, Standing
    from zsntta_cli.results.keeping import Keeping

    Show = Callable[[TableContent], None]


@with_groups
def paper(
    *,
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
    encoder: EncoderOptions,
    features_dir: FeaturesDir = FEATURES,
    store: KeepingOptions,
    form: Annotated[
        Form | None, typer.Option("--format", help="[by the output's ending, or table]")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write to this file, whole or not.")] = None,
    samples: Annotated[int, live_option("Of table 4's timing; the first warm up.")] = SAMPLES,
    live: Annotated[
        bool, live_option("Run live methods too, which may take days.", "--live")
    ] = False,
    live_options: LiveOptions,
    dry_run: DryRun = False,
) -> None:
    """The paper's tables: measured, published, and whether the difference is more than chance.

    A table is run from cached features; what was run before is kept. Without a name: which tables
    there are, and what each needs.
    """
    from zsntta_cli.paper.printed.tables import figure_number, find_table

    choice = encoder.choice() if encoder.is_named else None
    is_of_one = bool(output) or form not in (None, "table")
    _check_usage(name, published, check, is_of_one, encoder.is_named)
    figure = figure_number(name) if name is not None else None
    if figure and form:
        raise misused("--format is of tables: the ending of --output says what a figure is.")
    if figure:
        from zsntta_cli.report import plots

        drawn = output or Path(f"fig{figure}.pdf")
        plots.check_drawable(form_of(drawn, plots.FORMS))
    else:
        show = partial(_show, form_of(output, ENDINGS, form, "table"), output)
    if published:
        if figure:
            _show_published_figure(figure, drawn)
        else:
            _show_published(find_table(str(name)), show)
        return
    from zsntta_cli.paper.cells import PaperEncoder
    from zsntta_cli.paper.runs import Wishes

    check_choice("preset", preset, tuple(PRESETS))
    seeds = tuple(dict.fromkeys(seed or ()))
    wishes = Wishes(features_dir, PaperEncoder(choice), preset, seeds)
    settings = live_options.settings(choice)
    if name is None and not check:
        _show_overview(wishes, store.keeping())
        return
    if dry_run:
        _say_what_would_be_run(name, figure, wishes, store.keeping(), live, ctx.params)
        return
    execution = _execution(store.keeping(), jobs, settings, live, samples)
    if check:
        _show_check(wishes, execution, ctx.params)
    elif figure:
        _show_figure(figure, wishes, execution, drawn, ctx.params)
    else:
        _show_table(find_table(str(name)), wishes, execution, show, ctx.params)


def _check_usage(
    name: str | None, published: bool, check: bool, is_of_one: bool, is_named: bool
) -> None:
    """Refuse options that contradict each other, before anything is read.

    Raises:
        UsageError: which option, and why.
    """
    if published and name is None:
        raise misused("--published shows a table: name it, as in zsntta paper 2 --published.")
    if published and (check or is_named):
        other = "check" if check else "model, or another encoder"
        raise misused(f"--published shows what is printed: leave --{other} out.")
    if check and name is not None:
        raise misused(f"--check is of all tables: leave '{name}' out.")
    if name is None and is_of_one:
        raise misused("--format and --output are of one table: name it, as in zsntta paper 2.")


def _say_what_would_be_run(
    name: str | None,
    figure: int | None,
    wishes: "Wishes",
    keeping: "Keeping",
    live: bool,
    given: "Given",
) -> None:
    """Say what a table, a figure or all tables would run; live runs only where they are to be."""
    from dataclasses import replace

    from zsntta_cli.paper.figures import found
    from zsntta_cli.paper.printed.tables import TABLES, find_table
    from zsntta_cli.paper.runs import all_runs, is_timed, needs_images
    from zsntta_cli.paper.standing import figure_runs

    if figure:
        runs = figure_runs(figure, wishes)
        keeping = replace(keeping, gradients=found(figure).analysed)
    else:
        runs = all_runs(wishes, [find_table(name)] if name else TABLES)
    shown_runs = [run for run in runs if not is_timed(run) and (live or not needs_images(run))]
    if left_out := len(runs) - len(shown_runs):
        how = "timed, which takes no features" if live else "live: --live runs them"
        say(f"{left_out:,} more runs are {how}.")
    say_foresight(wishes.root, shown_runs, keeping, given)


def _execution(
    keeping: "Keeping", jobs: int, settings: LiveSettings, live: bool, samples: int
) -> "Execution":
    from zsntta_cli.paper.standing import Execution
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.simulation import LiveDevices

    reporter = ConsoleReporter()
    session = LiveDevices(settings, reporter) if live else None
    return Execution(reporter, keeping, jobs, session, settings.device.split(",")[0], samples)


def _show(form: str, output: Path | None, content: "TableContent") -> None:
    from zsntta_cli.paper.sheets import render

    put(render(content, form, output is not None), output)


def _show_published(table: "PaperTable", show: "Show") -> None:
    from zsntta_cli.paper.sheets import published_content

    show(published_content(table, command_line()))


def _show_overview(wishes: "Wishes", keeping: "Keeping") -> None:
    from zsntta_cli.paper.overview import draw, look_over, totals
    from zsntta_cli.progress import console

    overview = look_over(wishes, keeping)
    for table in draw(overview):
        console().print(table)
    for line in totals(overview):
        say(line)


def _show_table(
    table: "PaperTable", wishes: "Wishes", execution: "Execution", show: "Show", given: "Given"
) -> None:
    if not table.is_measured:
        _show_published(table, show)
        return
    standing = _stand([table], wishes, execution, given)
    show(standing.content(table, command_line()))
    _stop_if_unfinished(standing)


def _show_check(wishes: "Wishes", execution: "Execution", given: "Given") -> None:
    from zsntta_cli.paper.printed.tables import TABLES
    from zsntta_cli.paper.sheets import check_lines

    measured = [table for table in TABLES if table.is_measured]
    standing = _stand(measured, wishes, execution, given)
    for line in check_lines({table: standing.content(table).comparisons for table in measured}):
        say(line)
    _stop_if_unfinished(standing)


def _stand(
    tables: "Sequence[PaperTable]", wishes: "Wishes", execution: "Execution", given: "Given"
) -> "Standing":
    """Run what tables lack, and say what is left."""
    from zsntta_cli.paper.standing import stand

    standing = stand(tables, wishes, execution)
    _say_what_is_left(standing, given)
    return standing


def _say_what_is_left(obtained: "Obtained", given: "Given") -> None:
    """Say what is missing and how to get it, what was not run and why."""
    from zsntta_cli.cli.hints import making_all

    if obtained.missing:
        count = sum(map(len, obtained.missing.values()))
        command = making_all(obtained.missing, given)
        say(f"note: {count} feature file{'s' * (count > 1)} missing: type {command}", err=True)
    if obtained.not_live:
        say(
            f"note: {len(obtained.not_live):,} live runs of {obtained.items_left:,} items were "
            "left out: --live runs them",
            err=True,
        )


def _stop_if_unfinished(standing: "Standing") -> None:
    """End as Ctrl-C does, once the results up to it are out."""
    if standing.unfinished:
        raise KeyboardInterrupt


def _show_figure(
    number: int, wishes: "Wishes", execution: "Execution", output: Path, given: "Given"
) -> None:
    from zsntta_cli.paper.figures import found
    from zsntta_cli.paper.standing import illustrate

    illustration = illustrate(number, wishes, execution)
    _say_what_is_left(illustration, given)
    put_figure(illustration.figure(), found(number).width, output)


def _show_published_figure(number: int, output: Path) -> None:
    """Draw what the paper's tables say of a figure: nothing is run."""
    from zsntta_cli.paper.figures import PAPER, draw, found, published

    printed = published(number)
    if not printed:
        raise misused(f"the paper prints no number that figure {number} follows from.")
    put_figure(draw(number, [], printed, PAPER), found(number).width, output)
