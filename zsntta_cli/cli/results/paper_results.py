"""What `zsntta paper` shows and writes, once it is known what is asked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zsntta_cli.cli.line.command import completed, misused, say
from zsntta_cli.cli.line.dry import say_foresight
from zsntta_cli.cli.line.output import command_line, put, put_figure
from zsntta_cli.errors import counted
from zsntta_cli.paper.printed.tables import PaperTable

if TYPE_CHECKING:
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.paper.standing import Execution, Obtained
    from zsntta_cli.results.keeping import Keeping

Tables = Sequence[PaperTable]


def show_published(tables: Tables, form: str, output: Path | None) -> None:
    """Show the paper's numbers of some tables."""
    from zsntta_cli.paper.sheets import published_content, render

    if tables:
        contents = [published_content(table, command_line()) for table in tables]
        put(render(contents, form, output is not None), output)


def show_published_figures(numbers: Sequence[int], output: Path | None) -> None:
    """Draw what the paper's tables say of figures: nothing is run."""
    for number in numbers:
        from zsntta_cli.paper.figures import PAPER, draw, found, published  # NumPy

        printed = published(number)
        if not printed:
            raise misused(f"the paper prints no number that figure {number} follows from.")
        figure = draw(number, [], printed, PAPER)
        put_figure(figure, found(number).width, output or Path(f"fig{number}.pdf"))


def show_overview(wishes: "Wishes", keeping: "Keeping") -> None:
    """Show all tables and figures, what each needs and what is left to run."""
    from zsntta_cli.paper.overview import draw, look_over, totals
    from zsntta_cli.progress import console

    overview = look_over(wishes, keeping)
    for table in draw(overview):
        console().print(table)
    for line in totals(overview):
        say(line)


def say_what_would_be_run(
    tables: Tables,
    figures: Sequence[int],
    wishes: "Wishes",
    keeping: "Keeping",
    live: bool,
    given: "Mapping[str, Any]",
) -> None:
    """Say what tables and figures would run, of none named all tables; live runs where asked."""
    from dataclasses import replace

    from zsntta_cli.paper.figures import found
    from zsntta_cli.paper.printed.tables import TABLES
    from zsntta_cli.paper.runs import all_runs
    from zsntta_cli.paper.standing import figure_runs
    from zsntta_cli.simulation.tuned import live_among

    runs = all_runs(wishes, tables if tables or figures else TABLES)
    for number in figures:
        runs += figure_runs(number, wishes)
        keeping = replace(keeping, gradients=keeping.gradients or found(number).analysed)
    runs = list(dict.fromkeys(runs))
    by_images = live_among(wishes.root, runs)
    shown_runs = [run for run in runs if live or run not in by_images]
    if left_out := len(runs) - len(shown_runs):
        say(f"{left_out:,} more runs are live: --live runs them.")
    say_foresight(wishes.root, shown_runs, keeping, given)


def show_tables(
    tables: Tables,
    wishes: "Wishes",
    execution: "Execution",
    where: tuple[str, Path | None],
    given: "Mapping[str, Any]",
) -> None:
    """Run what tables lack, and show them in a form, on stdout or in a file."""
    from dataclasses import replace

    from zsntta_cli.paper.sheets import render
    from zsntta_cli.paper.standing import stand
    from zsntta_cli.report.forms import FORMS

    if not tables:
        return
    form, output = where
    execution = replace(execution, tells_notes=output is not None or FORMS[form].of_rows)
    standing = stand(tables, wishes, execution)
    _say_what_is_left(standing, given)
    contents = [standing.content(table, command_line()) for table in tables]
    put(render(contents, form, output is not None), output)
    _stop_if(standing.unfinished)


def show_figures(
    numbers: Sequence[int],
    wishes: "Wishes",
    execution: "Execution",
    output: Path | None,
    given: "Mapping[str, Any]",
) -> None:
    """Run what figures lack, and draw them."""
    if numbers:
        from zsntta_cli.paper.figures import found
        from zsntta_cli.paper.standing import illustrate
    for number in numbers:
        illustration = illustrate(number, wishes, execution)
        _say_what_is_left(illustration, given)
        drawn = output or Path(f"fig{number}.pdf")
        put_figure(illustration.figure(), found(number).width, drawn)


def reproduce_all(
    folder: Path, wishes: "Wishes", execution: "Execution", given: "Mapping[str, Any]"
) -> None:
    """Write all tables and figures into a folder; exit code 1 where nothing could be measured."""
    from zsntta_cli.paper.reproduction import INDEX, reproduce

    made = reproduce(folder, wishes, execution, command_line())
    _say_what_is_left(made.whole, given)
    say(made.sentence)
    say(str(folder / INDEX))
    _stop_if(made.whole.unfinished)
    if not made.measured:
        raise typer.Exit(1)


def _say_what_is_left(obtained: "Obtained", given: "Mapping[str, Any]") -> None:
    """Say what is missing and how to get it, what was not run and why."""
    from zsntta_cli.cache.lacking import making_all

    if obtained.missing:
        count = sum(map(len, obtained.missing.values()))
        command = making_all(obtained.missing, Path(given["features_dir"]))
        missing = f"note: {counted(count, 'feature file')} missing: type {command}"
        say(completed(missing, given), err=True)
    if obtained.not_live:
        say(
            f"note: {len(obtained.not_live):,} live runs of {obtained.items_left:,} items were "
            "left out: --live runs them",
            err=True,
        )
    for run, reason in obtained.failures.items():
        say(f"note: {run.method} on {run.id_set} and {run.ood_set} failed: {reason}", err=True)


def _stop_if(unfinished: bool) -> None:
    """End as Ctrl-C does, once the results up to it are out."""
    if unfinished:
        raise KeyboardInterrupt
