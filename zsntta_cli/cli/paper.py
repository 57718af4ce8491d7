"""`zsntta paper`: the paper's tables and figures, measured and compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zsntta_cli.cli.command import completed, say
from zsntta_cli.cli.options import (
    DRY_RUN,
    EncoderOptions,
    JobOptions,
    KeepingOptions,
    Names,
    argument,
    option,
    single_settings,
)
from zsntta_cli.cli.output import (
    FORM,
    TableOutput,
    command_line,
    form_of,
    put,
    put_figure,
    say_foresight,
)
from zsntta_cli.cli.values import names, whole_numbers
from zsntta_cli.errors import SettingsError, counted
from zsntta_cli.methods import METHODS, check_method
from zsntta_cli.paper.tables import TABLES, PaperTable, parse_names, tables_with
from zsntta_cli.report.forms import FIGURE_ENDINGS, FORMS, TABLE
from zsntta_cli.settings import EncoderChoice, ExtractSettings, LiveSettings
from zsntta_cli.settings.options import check_choice
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.runs import PRESETS, declared

if TYPE_CHECKING:
    from zsntta_cli.paper.measuring import Measuring
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.progress import Reporter
    from zsntta_cli.results.store import Keeping
    from zsntta_cli.simulation.runs import RunSettings

_measured = partial(option, None, panel="What to measure")


@dataclass(frozen=True)
class RowOptions:
    """Options that say how the paper's rows are run and which rows are added."""

    preset: str = option("paper", "Named settings: paper or official.")
    seed: Names = _measured(
        "Seeds of the streams. Several seeds show which differences they explain. [the table's]",
        reader=whole_numbers,
    )
    method: Names = _measured(
        "Methods to add as rows on the same streams, including your own.", reader=names
    )
    prompt: str | None = option(None, "Cached template for all sets, or 'code' or 'paper'.")
    assignments: Names = option(
        None, "Setting that differs from the paper's: METHOD.SETTING=VALUE.", "--set",
        metavar="NAME=VALUE",
    )  # fmt: skip
    ood_items: Path | None = option(
        None,
        "Folder of lists of OOD images, ODDS/ID_OOD.txt. For pairs without a list, images are "
        "chosen at random (docs/streams.md).",
    )

    def wishes(self, root: Path, encoder: EncoderOptions) -> "Wishes":
        """How tables are measured.

        Raises:
            SettingsError: a preset, prompt, setting or method is unknown.
        """
        from zsntta_cli.paper.runs import Wishes

        check_choice("preset", self.preset, tuple(PRESETS))
        choice, seeds = encoder.choice(), tuple(map(int, dict.fromkeys(self.seed or ())))
        of_all, of_one = single_settings(self.assignments)
        by_method = dict[str, dict[str, Any]]()
        for method in dict.fromkeys((*METHODS, *of_one)):
            of_method = {name: v for name, v in of_all.items() if name in declared(method)}
            if values := of_method | of_one.get(method, {}):
                by_method[method] = values
        wishes = Wishes(
            root, choice if encoder.names_model else None, choice.precision, self.preset, seeds,
            cached_prompt(self.prompt) if self.prompt else "", by_method,
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


def paper(
    *,
    ctx: typer.Context,
    name: str | None = argument(
        None, "Table number or name, fig2 … fig9, or a list such as 2,3,fig6. An ID set lists "
        "its tables. [a list of all]",
    ),
    published: bool = option(
        False, "Print only the paper's numbers, and run nothing.", "--published"
    ),
    everything: bool = option(
        False, "Write all tables and figures to files in the folder --output.", "--all"
    ),
    extract: bool = option(
        False, "First encode what is missing: available sets and injected noise.", "--extract",
        panel=EncoderChoice.panel,
    ),
    rows: RowOptions,
    jobs: JobOptions,
    encoder: EncoderOptions,
    store: KeepingOptions,
    form: str | None = FORM,
    output: Path | None = option(None, "File to write, or with --all a folder."),
    live: bool = option(
        False, "Also run live methods, which may take days.", "--live", panel=LiveSettings.panel
    ),
    machine: LiveSettings,
    dry_run: bool = DRY_RUN,
) -> None:  # fmt: skip
    """Reproduce the paper's tables and compare with its numbers.

    [bold]zsntta paper 2[/bold]

    [bold]zsntta paper 2,3,fig6 --seed 0-4[/bold]

    [bold]zsntta paper 2 --published[/bold]

    Differences that seeds do not explain are marked.

    Tables are measured on cached features, and finished runs are kept. Without a name, all tables
    are listed with what they need.
    """
    listed = list(TABLES.values()) if name is None else tables_with(name)
    tables, figures = ([], []) if listed else parse_names(name or "")
    if everything and (published or name is not None):
        other = "--published" if published else f"'{name}'"
        raise SettingsError(f"--all measures all tables and figures: omit {other}.")
    if listed and not everything:
        outputs = "--format and --output" * (form not in (None, TABLE) or output is not None)
        if what := "--extract" * extract or "--published" * published or outputs:
            example = f"zsntta paper 2 {what}" if what != outputs else "zsntta paper 2"
            raise SettingsError(f"{what} without a table: name it, as in {example}.")
    if figures:
        if form or (output and (tables or len(figures) > 1)):
            raise SettingsError(
                "--format is for tables, and --output for one figure, whose format is the ending."
            )
        form_of(output or Path("fig.pdf"), FIGURE_ENDINGS)
    written = TABLE if figures or everything else TableOutput(form, output).form or TABLE
    if published:
        of_runs = {
            **encoder.given, "method": rows.method, "seed": rows.seed, "set": rows.assignments,
            "prompt": rows.prompt, "ood-items": rows.ood_items, "extract": extract, "live": live,
            "preset": rows.preset != "paper",
        }  # fmt: skip
        if typed := next((name for name, value in of_runs.items() if value), ""):
            raise SettingsError(f"--published measures nothing: omit --{typed}.")
        _show_published(tables, figures, written, output)
        return
    wishes, keeping = rows.wishes(store.features_dir, encoder), store.keeping()
    if wishes.methods and not tables:  # nor with --all: not every table takes them
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
        from zsntta_cli.paper.reproduction import runs_of_paper

        of_figures = {} if everything else {"figures": figures}
        runs = runs_of_paper(wishes, tables or listed, **of_figures)
        if extract:
            _extract(runs, wishes, machine, None if dry_run else reporter)
        if dry_run:
            line = command_line().replace(" --dry-run", "") + " --extract" * (not extract)
            way = line if name or everything else "zsntta extract --paper"
            _foresee(runs, wishes, keeping, figures, live, ctx.params, way)
            return
    from zsntta_cli.paper.measuring import Measuring
    from zsntta_cli.results.runner import Runner

    by = replace(machine, weights=encoder.choice().file) if live else None
    runner = Runner(wishes.root, jobs.jobs, jobs.engine, by, reporter, keeping)
    measuring = Measuring(wishes, runner, keeping, live)
    is_measured = True
    try:
        if everything:
            from zsntta_cli.paper.reproduction import INDEX, reproduce

            folder = output or Path("reproduction")
            sentence, is_measured = reproduce(folder, measuring, command_line())
            say(sentence)
            say(str(folder / INDEX))
        else:
            _show(tables, figures, measuring, written, output)
    finally:
        _say_left_out(measuring, ctx.params)
    if measuring.is_unfinished:  # ends as Ctrl-C does, once the results up to it are out
        raise KeyboardInterrupt
    if not is_measured:
        raise typer.Exit(1)


def _foresee(
    runs: "Sequence[RunSettings]",
    wishes: "Wishes",
    keeping: "Keeping",
    figures: Sequence[int],
    live: bool,
    typed: Mapping[str, Any],
    way: str,
) -> None:
    """Say which runs are kept, to run, or without features, and how to get the features."""
    from zsntta_cli.paper.figures import GRADIENTS
    from zsntta_cli.simulation.tuned import live_among

    if not live and (images := live_among(wishes.root, runs)):
        say(f"{len(images):,} more runs are live: add --live to run them.")
        runs = [run for run in runs if run not in images]
    keeping = replace(keeping, gradients=not {*GRADIENTS}.isdisjoint(figures))
    say_foresight(wishes.root, runs, keeping, typed, way)


def _say_left_out(measuring: "Measuring", typed: Mapping[str, Any]) -> None:
    """Say what tables and figures lack: features, live runs, runs that failed."""
    from zsntta_cli.paper.measuring import way_to_make

    if missing := measuring.missing:
        files = counted(sum(map(len, missing.values())), "feature file")
        line = f"note: {files} missing: {way_to_make(missing, measuring.wishes.root)}"
        say(completed(line, typed), err=True)
    if count := len(measuring.left_out):
        say(f"note: {counted(count, 'live run')} left out: add --live to include them", err=True)
    for run, reason in measuring.failures.items():
        say(f"note: {run.method} on {run.id_set} and {run.ood_set} failed: {reason}", err=True)


def _extract(
    runs: "Sequence[RunSettings]",
    wishes: "Wishes",
    machine: LiveSettings,
    reporter: "Reporter | None",
) -> None:
    """Encode what runs lack, or list it; a note says what fails, and the runs lack it.

    Raises:
        SettingsError: a folder of features is named, and no model.
        EncoderError: a path of weights that is no file.
    """
    from zsntta_cli.cli.extract import extract_for
    from zsntta_cli.encoders.weights import check_named
    from zsntta_cli.extraction.plan import ExtractPlan

    if wishes.named and wishes.named.folder:
        raise SettingsError(
            "--extract needs a model: name it, as in zsntta paper 10 --extract --model tiny."
        )
    if wishes.named:
        check_named(wishes.named)
    settings = ExtractSettings(
        workers=machine.workers, device=machine.device, features_dir=wishes.root
    )
    plan = ExtractPlan((), machine.data_root)
    extract_for(runs, wishes, plan, settings, reporter)


def _show_published(
    tables: Sequence[PaperTable], figures: Sequence[int], form: str, output: Path | None
) -> None:
    """Show what the paper prints of tables, and the figures that follow from it."""
    from zsntta_cli.paper.compare import compare
    from zsntta_cli.paper.runs import Wishes, cells
    from zsntta_cli.paper.shown import TableContent, render

    for number in figures:
        from zsntta_cli.paper.figures import WIDTHS, draw, published  # NumPy

        if not (printed := published(number)):
            raise SettingsError(f"the paper has no numbers to draw figure {number} from.")
        put_figure(draw(number, [], printed), WIDTHS[number], output or Path(f"fig{number}.pdf"))
    contents = []
    for table in tables:
        numbers = compare(cells(table, Wishes(Path())), {})
        contents.append(TableContent(table, numbers, (), command_line(), True))
    if contents:
        put(render(contents, form, output is not None), output)


def _show(
    tables: Sequence[PaperTable],
    figures: Sequence[int],
    measuring: "Measuring",
    form: str,
    output: Path | None,
) -> None:
    """Run what figures and tables lack; draw the figures, and show the tables in a format."""
    from zsntta_cli.paper.shown import render

    for number in figures:
        from zsntta_cli.paper.figures import WIDTHS  # not for tables

        put_figure(measuring.figure(number), WIDTHS[number], output or Path(f"fig{number}.pdf"))
    if tables:
        measuring.tells_notes = output is not None or FORMS[form].of_rows
        contents = measuring.tables(tables, command_line())
        put(render(contents, form, output is not None), output)
