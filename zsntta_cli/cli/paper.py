"""`zsntta paper`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli.command import completed, say
from zsntta_cli.cli.options import (
    DryRun,
    EncoderOptions,
    FeaturesDir,
    JobOptions,
    KeepingOptions,
    argument,
    method_settings,
    option,
)
from zsntta_cli.cli.output import ListForm, command_line, form_of, put, put_figure, say_foresight
from zsntta_cli.cli.values import known_methods, names, whole_numbers
from zsntta_cli.errors import SettingsError, counted, first_line
from zsntta_cli.methods import METHODS, check_method
from zsntta_cli.paper.tables import TABLES, PaperTable, parse_names, tables_with
from zsntta_cli.report.forms import ENDINGS, FIGURE_ENDINGS, FORMS
from zsntta_cli.settings import FEATURES, ExtractSettings, LiveSettings
from zsntta_cli.settings.options import check_choice
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.runs import PRESETS, declared

if TYPE_CHECKING:
    from zsntta_cli.paper.measuring import Measuring
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.progress import Reporter
    from zsntta_cli.results.store import Keeping
    from zsntta_cli.simulation.runs import RunSettings


@dataclass(frozen=True)
class RowOptions:
    """What the paper's rows are run with, and which rows are added."""

    preset: Annotated[str, option(help="Named settings: paper or official.")] = "paper"
    seed: Annotated[
        list[int] | None,
        option(
            panel="What is measured",
            reader=whole_numbers,
            help="Seeds of the streams; several say what they explain of differences. "
            "[the table's own]",
        ),
    ] = None
    method: Annotated[
        list[str] | None,
        option(
            panel="What is measured",
            reader=names,
            help="Methods for additional rows on the same streams; also of your own.",
            autocompletion=known_methods,
        ),
    ] = None
    prompt: Annotated[
        str | None, option(help="Cached template for all sets, or 'code', 'paper'.")
    ] = None
    own: Annotated[
        list[str] | None,
        option("--set", help="A setting that differs from the paper's: METHOD.SETTING=VALUE."),
    ] = None
    ood_items: Annotated[
        Path | None,
        option(
            help="Folder of lists of the OOD images, ODDS/ID_OOD.txt; of a pair without one they "
            "are drawn (docs/streams.md)."
        ),
    ] = None

    def wishes(self, root: Path, encoder: EncoderOptions) -> "Wishes":
        """What tables are measured with.

        Raises:
            SettingsError: there is no such preset, prompt, setting or method.
        """
        from zsntta_cli.paper.runs import Wishes

        check_choice("preset", self.preset, tuple(PRESETS))
        choice = encoder.choice()
        wishes = Wishes(
            root, choice if encoder.names_model else None, choice.precision, self.preset,
            tuple(dict.fromkeys(self.seed or ())),
            cached_prompt(self.prompt) if self.prompt else "", _own_values(self.own or ()),
            tuple(dict.fromkeys(self.method or ())), self.ood_items,
        )  # fmt: skip
        if self.ood_items and not any(self.ood_items.glob("*/*.txt")):
            raise SettingsError(
                f"--ood-items is {self.ood_items}, which has no list: it must be a folder with "
                "ODDS/ID_OOD.txt, such as 1/cifar10_svhn.txt."
            )
        for added in wishes.methods:
            check_method(added)
        return wishes


def _own_values(texts: Sequence[str]) -> tuple[tuple[str, str, Any], ...]:
    """The values of --set, one a setting.

    Raises:
        SettingsError: a text of another form, or several values of a setting.
    """
    of_all, own = method_settings(texts)
    every = [(m, n, given) for n, given in of_all.items() for m in METHODS if n in declared(m)]
    every += [(m, name, given) for m, axes in own.items() for name, given in axes.items()]
    for _, name, given in every:
        if len(given) > 1:
            raise SettingsError(
                f"{name.replace('_', '-')} is given {len(given)} values: a table has one of each "
                "setting."
            )
    return tuple((method, name, given[0]) for method, name, given in every)


def paper(
    *,
    ctx: typer.Context,
    name: Annotated[
        str | None,
        argument(
            help="A table's number or name, fig2 … fig9, or several: 2,3,fig6; an ID set lists its "
            "tables. [none: lists all]"
        ),
    ] = None,
    published: Annotated[
        bool, option("--published", help="Print only the paper's numbers, and run nothing.")
    ] = False,
    everything: Annotated[
        bool,
        option("--all", help="Write all tables and figures to files in the folder --output."),
    ] = False,
    extract: Annotated[
        bool,
        option(
            "--extract",
            panel="On which features",
            help="First encode what is missing: sets at hand, injected noise.",
        ),
    ] = False,
    rows: RowOptions,
    jobs: JobOptions,
    encoder: EncoderOptions,
    features_dir: FeaturesDir = FEATURES,
    store: KeepingOptions,
    form: ListForm = None,
    output: Annotated[Path | None, option(help="File to write, or with --all a folder.")] = None,
    live: Annotated[
        bool,
        option("--live", panel="Live methods", help="Also run live methods, which may take days."),
    ] = False,
    machine: LiveSettings,
    dry_run: DryRun = False,
) -> None:
    """Measure the paper's tables and compare with what it prints.

    [bold]zsntta paper 2[/bold]

    [bold]zsntta paper 2,3,fig6 --seed 0-4[/bold]

    [bold]zsntta paper 2 --published[/bold]

    A difference that seeds do not explain is marked.

    A table is run from cached features; what was run before is kept. Without a name: which tables
    there are, and what each needs.
    """
    listed = list(TABLES.values()) if name is None else tables_with(name)
    tables, figures = ([], []) if listed else parse_names(name or "")
    if everything:
        tables = list(TABLES.values())
    _check_usage(name, published, everything, bool(listed), {
        "--extract": extract, "--format and --output": form not in (None, "table") or output,
    })  # fmt: skip
    written = "table" if figures or everything else form_of(output, ENDINGS, form, "table")
    if figures:
        if form or (output and (tables or len(figures) > 1)):
            raise SettingsError(
                "--format is of tables, and --output of one figure: its ending says what it is."
            )
        form_of(output or Path("fig.pdf"), FIGURE_ENDINGS)
    if published:
        if encoder.given:
            raise SettingsError(
                "--published shows what is printed: leave --model, or another encoder, out."
            )
        _show_published(tables, figures, written, output)
        return
    from zsntta_cli.results.store import Keeping

    wishes = rows.wishes(features_dir, encoder)
    keeping = Keeping.beside(features_dir, store.file, store.fresh, command_line())
    if wishes.methods and not tables:
        raise SettingsError(
            "--method adds rows to tables: name one, as in zsntta paper 2 --method tda."
        )
    if listed and not (everything or dry_run):
        from zsntta_cli.paper.reproduction import overview

        for line in overview(listed, wishes, keeping):
            say(line)
        return
    from zsntta_cli.progress import ConsoleReporter

    reporter = ConsoleReporter()
    if extract or dry_run:
        from zsntta_cli.paper.extracting import runs_of_paper

        if everything:
            runs = runs_of_paper(wishes)
        else:
            runs = runs_of_paper(wishes, tables or listed, figures)
        if extract:
            _extract(runs, wishes, machine, None if dry_run else reporter)
        if dry_run:
            _say_what_would_be_run(runs, figures, wishes, keeping, live, ctx.params)
            return
    from zsntta_cli.paper.measuring import Measuring
    from zsntta_cli.results.runner import Runner
    from zsntta_cli.simulation import LiveDevices

    machine = replace(machine, weights=encoder.choice().file)
    devices = LiveDevices(machine, reporter) if live else None
    runner = Runner(features_dir, jobs.jobs, jobs.engine, devices, reporter, keeping)
    measuring = Measuring(wishes, runner, keeping, live)
    is_measured = True
    try:
        if everything:
            is_measured = _reproduce_all(output or Path("reproduction"), measuring)
        else:
            _show(tables, figures, measuring, written, output)
    finally:
        _say_what_is_left(measuring, ctx.params)
    if measuring.is_unfinished:  # ends as Ctrl-C does, once the results up to it are out
        raise KeyboardInterrupt
    if not is_measured:
        raise typer.Exit(1)


def _check_usage(
    name: str | None, published: bool, everything: bool, is_list: bool, of_tables: Mapping[str, Any]
) -> None:
    """Refuse options that contradict each other, before anything is read.

    Raises:
        SettingsError: which option, and why.
    """
    if published and everything:
        raise SettingsError("--published shows what is printed: leave --all out.")
    if everything and name is not None:
        raise SettingsError(f"--all is of all tables: leave '{name}' out.")
    for option_, given in {**of_tables, "--published": published}.items():
        if given and is_list and not everything:
            typed = f" {option_}" * (" and " not in option_)
            raise SettingsError(f"{option_} needs a table: name it, as in zsntta paper 2{typed}.")


def _extract(
    runs: "Sequence[RunSettings]",
    wishes: "Wishes",
    machine: LiveSettings,
    reporter: "Reporter | None",
) -> None:
    """Encode what runs lack, or say it; what fails is left to the runs' own words.

    Raises:
        SettingsError: a folder of features is named, and no model.
        EncoderError: a path of weights that is no file.
    """
    from zsntta_cli.cli.extract_paper import extract_for
    from zsntta_cli.encoders.weights import check_named
    from zsntta_cli.extraction.plan import ExtractPlan

    if wishes.named and wishes.named.folder:
        raise SettingsError(
            "--extract needs a model: name it by --model, as in zsntta paper 10 --extract --model "
            "tiny."
        )
    if wishes.named:
        check_named(wishes.named)
    settings = ExtractSettings(
        workers=machine.workers, device=machine.device, features_dir=wishes.root
    )
    plan = ExtractPlan((), machine.data_root)
    for name, error in extract_for(runs, wishes, plan, settings, reporter).items():
        say(f"note: not extracted: {name}: {first_line(error)}", err=True)


def _say_what_would_be_run(
    runs: "Sequence[RunSettings]",
    figures: Sequence[int],
    wishes: "Wishes",
    keeping: "Keeping",
    live: bool,
    given: Mapping[str, Any],
) -> None:
    """Say what would be run; live runs where asked."""
    from zsntta_cli.paper.figures import GRADIENTS
    from zsntta_cli.simulation.tuned import live_among

    keeping = replace(keeping, gradients=not {*GRADIENTS}.isdisjoint(figures))
    by_images = live_among(wishes.root, runs)
    shown_runs = [run for run in runs if live or run not in by_images]
    if left_out := len(runs) - len(shown_runs):
        say(f"{left_out:,} more runs are live: --live runs them.")
    say_foresight(wishes.root, shown_runs, keeping, given)


def _show_published(
    tables: Sequence[PaperTable], figures: Sequence[int], form: str, output: Path | None
) -> None:
    """Show what the paper prints of tables, and the figures that follow from it."""
    from zsntta_cli.paper.compare import compare
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.paper.shown import TableContent, render

    for number in figures:
        from zsntta_cli.paper.figures import WIDTHS, draw, published  # NumPy

        if not (printed := published(number)):
            raise SettingsError(f"the paper prints no number that figure {number} follows from.")
        put_figure(draw(number, [], printed), WIDTHS[number], output or Path(f"fig{number}.pdf"))
    contents = [
        TableContent(table, compare(table, Wishes(Path()), {}), (), command_line(), True)
        for table in tables
    ]
    if contents:
        put(render(contents, form, output is not None), output)


def _show(
    tables: Sequence[PaperTable],
    figures: Sequence[int],
    measuring: "Measuring",
    form: str,
    output: Path | None,
) -> None:
    """Run what figures and tables lack; draw the figures, and show the tables in a form."""
    from zsntta_cli.paper.runs import all_runs
    from zsntta_cli.paper.shown import render

    for number in figures:
        from zsntta_cli.paper.figures import WIDTHS  # not for tables
        from zsntta_cli.paper.reproduction import measured_figure

        figure = measured_figure(number, measuring)
        put_figure(figure, WIDTHS[number], output or Path(f"fig{number}.pdf"))
    if tables:
        measuring.tells_notes = output is not None or FORMS[form].of_rows
        measuring.obtain(all_runs(measuring.wishes, tables))
        contents = [measuring.content(table, command_line()) for table in tables]
        put(render(contents, form, output is not None), output)


def _reproduce_all(folder: Path, measuring: "Measuring") -> bool:
    """Write all tables and figures into a folder; whether anything could be measured."""
    from zsntta_cli.paper.reproduction import INDEX, reproduce

    made = reproduce(folder, measuring, command_line())
    say(made.sentence)
    say(str(folder / INDEX))
    return made.is_measured


def _say_what_is_left(measuring: "Measuring", given: Mapping[str, Any]) -> None:
    """Say what is missing and how to get it, what was not run and why."""
    from zsntta_cli.paper.measuring import way_to_make

    if missing := measuring.missing:
        files = counted(sum(map(len, missing.values())), "feature file")
        way = way_to_make(missing, measuring.wishes.root)
        say(completed(f"note: {files} missing: {way}", given), err=True)
    if left := len(measuring.left_out):
        say(f"note: {counted(left, 'live run')} left out: --live runs what is live", err=True)
    for run, reason in measuring.failures.items():
        say(f"note: {run.method} on {run.id_set} and {run.ood_set} failed: {reason}", err=True)
