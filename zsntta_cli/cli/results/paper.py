"""`zsntta paper`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli.line import completion
from zsntta_cli.cli.line.command import misused
from zsntta_cli.cli.line.dry import DryRun
from zsntta_cli.cli.line.options import (
    EncoderOptions,
    FeaturesDir,
    JobOptions,
    KeepingOptions,
    LiveOptions,
    Seeds,
    argument,
    live_option,
    method_settings,
    option,
    ratios,
    several,
    with_groups,
)
from zsntta_cli.cli.line.output import ListForm, form_of
from zsntta_cli.cli.line.values import names, whole_numbers
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS, check_method
from zsntta_cli.report.forms import ENDINGS
from zsntta_cli.settings import FEATURES, LiveSettings
from zsntta_cli.settings.options import check_choice
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.runs import PRESETS, declared

if TYPE_CHECKING:
    from zsntta_cli.paper.cells import PaperEncoder
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.paper.standing import Execution
    from zsntta_cli.results.keeping import Keeping
    from zsntta_cli.results.runner import Jobs


@dataclass(frozen=True)
class RowOptions:
    """What the paper's rows are run with, and which rows are added."""

    preset: Annotated[
        str,
        option(help="Named settings: paper or official.", autocompletion=completion.presets),
    ] = "paper"
    seed: Annotated[
        list[int] | None,
        several(
            whole_numbers,
            "What is measured",
            "Seeds of the streams; several say what they explain of differences. [the table's own]",
        ),
    ] = None
    seeds: Seeds = None
    method: Annotated[
        list[str] | None,
        several(
            names,
            "What is measured",
            "Methods for additional rows on the same streams; also of your own.",
            autocompletion=completion.methods,
        ),
    ] = None
    ratio: Annotated[
        list[Any] | None,
        several(
            ratios,
            "What is measured",
            "Noise ratios at which the rows are repeated, such as natural; table 5 names none.",
        ),
    ] = None
    prompt: Annotated[
        str | None, option(help="Cached template for all sets, or 'code', 'paper'.")
    ] = None
    own: Annotated[
        list[str] | None,
        option(
            "--set",
            help="A setting that differs from the paper's: METHOD.SETTING=VALUE.",
        ),
    ] = None

    def wishes(self, root: Path, encoder: "PaperEncoder") -> "Wishes":
        """What is wanted of tables.

        Raises:
            SettingsError: there is no such preset, prompt, setting or method.
        """
        from zsntta_cli.paper.runs import Wishes

        seeds = [*(self.seed or ()), *(self.seeds or ())]
        wishes = Wishes(
            root, encoder, self.preset, tuple(dict.fromkeys(seeds)),
            cached_prompt(self.prompt) if self.prompt else "", _own_values(self.own or ()),
            tuple(dict.fromkeys(self.method or ())),
            tuple(dict.fromkeys(self.ratio or ())),
        )  # fmt: skip
        for added in wishes.methods:
            check_method(added)
        return wishes


@with_groups
def paper(
    *,
    ctx: typer.Context,
    name: Annotated[
        str | None,
        argument(
            help="A table's number or label, fig2 … fig9, or several: 2,3,fig6. [none: a list]"
        ),
    ] = None,
    published: Annotated[
        bool, option("--published", help="Print only the paper's numbers, and run nothing.")
    ] = False,
    everything: Annotated[
        bool,
        option("--all", help="Write all tables and figures to files in the folder --output."),
    ] = False,
    rows: RowOptions,
    jobs: JobOptions,
    encoder: EncoderOptions,
    features_dir: FeaturesDir = FEATURES,
    store: KeepingOptions,
    form: ListForm = None,
    output: Annotated[Path | None, option(help="File to write, or with --all a folder.")] = None,
    live: Annotated[
        bool, live_option("Also run live methods, which may take days.", "--live")
    ] = False,
    live_options: LiveOptions,
    dry_run: DryRun = False,
) -> None:
    """Measure the paper's tables and compare with what it prints.

    [bold]zsntta paper 2[/bold]

    [bold]zsntta paper 2,3,fig6 --seeds 5[/bold]

    [bold]zsntta paper 2 --published[/bold]

    A difference that seeds do not explain is marked.

    A table is run from cached features; what was run before is kept. Without a name: which tables
    there are, and what each needs.
    """
    from zsntta_cli.cli.results import paper_results as results
    from zsntta_cli.paper.printed.tables import parse_names

    choice = encoder.choice() if encoder.is_named else None
    is_of_one = bool(output) or form not in (None, "table")
    _check_usage(name, published, everything, is_of_one, encoder.is_named)
    tables, figures = parse_names(name) if name is not None else ([], [])
    if figures and (form or (output and (tables or len(figures) > 1))):
        raise misused(
            "--format is of tables, and --output of one figure: the ending says what a figure is."
        )
    if figures:
        from zsntta_cli.report.forms import FIGURE_ENDINGS

        form_of(output or Path("fig.pdf"), FIGURE_ENDINGS)
    written = "table"
    if not figures and not everything:
        written = form_of(output, ENDINGS, form, "table")
    if published:
        results.show_published_figures(figures, output)
        results.show_published(tables, written, output)
        return
    check_choice("preset", rows.preset, tuple(PRESETS))
    wishes = rows.wishes(features_dir, _paper_encoder(encoder))
    if wishes.methods and not tables:
        raise misused("--method adds rows to tables: name one, as in zsntta paper 2 --method tda.")
    if wishes.ratios and not tables:
        raise misused("--ratio is for a table that names none: zsntta paper 5 --ratio natural.")
    settings = live_options.settings(choice)
    if name is None and not everything:
        results.show_overview(wishes, store.keeping())
        return
    if dry_run:
        results.say_what_would_be_run(tables, figures, wishes, store.keeping(), live, ctx.params)
        return
    execution = _execution(store.keeping(), jobs.chosen(), settings, live)
    if everything:
        results.reproduce_all(output or Path("reproduction"), wishes, execution, ctx.params)
    else:
        results.show_figures(figures, wishes, execution, output, ctx.params)
        results.show_tables(tables, wishes, execution, (written, output), ctx.params)


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


def _paper_encoder(options: EncoderOptions) -> "PaperEncoder":
    """What is measured with: the paper's encoders in some precision, where none is named."""
    from zsntta_cli.paper.cells import PaperEncoder

    choice = options.choice()
    return PaperEncoder(choice if options.names_model else None, choice.precision)


def _check_usage(
    name: str | None, published: bool, everything: bool, is_of_one: bool, is_named: bool
) -> None:
    """Refuse options that contradict each other, before anything is read.

    Raises:
        UsageError: which option, and why.
    """
    if published and everything:
        raise misused("--published shows what is printed: leave --all out.")
    if published and name is None:
        raise misused("--published shows a table: name it, as in zsntta paper 2 --published.")
    if published and is_named:
        raise misused("--published shows what is printed: leave --model, or another encoder, out.")
    if everything and name is not None:
        raise misused(f"--all is of all tables: leave '{name}' out.")
    if name is None and not everything and is_of_one:
        raise misused("--format and --output are of tables: name one, as in zsntta paper 2.")


def _execution(keeping: "Keeping", jobs: "Jobs", settings: LiveSettings, live: bool) -> "Execution":
    from zsntta_cli.paper.standing import Execution
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.simulation import LiveDevices

    reporter = ConsoleReporter()
    session = LiveDevices(settings, reporter) if live else None
    return Execution(reporter, keeping, jobs, session)
