"""`zsntta simulate`."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import (
    RARE,
    DryRun,
    EncoderOptions,
    FeaturesDir,
    JobOptions,
    KeepingOptions,
    method_settings,
    option,
)
from zsntta_cli.cli.output import ListForm, command_line, form_of, put, say_foresight
from zsntta_cli.cli.values import cached_sets, known_methods, names, texts
from zsntta_cli.errors import SettingsError
from zsntta_cli.report.forms import ENDINGS, FORMS, TABLE
from zsntta_cli.settings import FEATURES, RAY, LiveSettings
from zsntta_cli.simulation import LiveDevices
from zsntta_cli.simulation.runs import PRESETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zsntta_cli.report.tables import View
    from zsntta_cli.simulation.record import Record, Replay
    from zsntta_cli.simulation.runs import RunSettings

CLASSES = "classes"  # a report of one run
_SCORES = {".csv": "csv", ".h5": "hdf5", ".hdf5": "hdf5"}
_wanted = partial(option, panel="What is run", reader=names)
_result = partial(option, panel="What comes out")


@dataclass(frozen=True)
class GridOptions:
    """What is run in all combinations, beside the settings of streams and methods."""

    method: Annotated[
        list[str] | None,
        _wanted(
            help="Methods, such as adand,tda, or all: every cached one. zsntta methods lists them.",
            autocompletion=known_methods,
        ),
    ] = None
    id_set: Annotated[
        list[str] | None,
        _wanted("--id", help="ID set. [cifar10; of tiny: shapes]", autocompletion=cached_sets),
    ] = None
    ood_set: Annotated[
        list[str] | None,
        _wanted(
            "--ood",
            help="OOD set, or 'all' cached. [the cached partners]",
            autocompletion=cached_sets,
        ),
    ] = None
    preset: Annotated[
        list[str] | None,
        _wanted(help=f"Named settings: {', '.join(PRESETS)} (docs/methods.md). [paper]"),
    ] = None
    prompt: Annotated[
        list[str] | None,
        option(
            panel="What is run",
            help="Cached template, or 'code', 'clip-80', a prompt file's name. [the set's]",
            metavar="TEMPLATE",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        option(
            "--set",
            panel="What is run",
            help="A setting of the methods that have it, or of one: warmup=5,10, tda.shift=3. "
            "zsntta methods show NAME lists them. Of all methods (docs/streams.md): "
            f"{', '.join(RARE)}.",
            metavar="NAME=VALUE",
        ),
    ] = None

    @property
    def given(self) -> list[str]:
        """The names of the options that the line has."""
        called = {"id_set": "id", "ood_set": "ood"}
        return [
            called.get(name, name)
            for name, value in vars(self).items()
            if value is not None and name != "settings"
        ]


@dataclass(frozen=True)
class TableOptions:
    """What of the results is shown, in which format and where."""

    report: Annotated[
        Literal["accuracy", "ood", "flags", "open-set", "calibration", "classes"],
        _result(
            help="Contents of a table: accuracy, ood, flags, open-set, calibration; classes: of "
            "one run, a row for each class.",
            metavar="NAME",
        ),
    ] = "accuracy"
    spread: Annotated[
        Literal["seeds", "sets"],
        _result(
            help="± of an average: its own over seeds, or the mean of the sets' as in the paper."
        ),
    ] = "seeds"
    columns: Annotated[
        list[str] | None,
        option(
            panel="What comes out",
            reader=texts,
            help="Metrics to show instead of the report's: acc_h,auroc …",
        ),
    ] = None
    aggregate: Annotated[
        bool,
        _result(
            "--aggregate",
            help="csv, json: write the table's means over seeds and averages, not the runs.",
        ),
    ] = False
    form: ListForm = None
    output: Annotated[Path | None, _result(help="File to write.")] = None


def simulate(
    *,
    ctx: typer.Context,
    wanted: GridOptions,
    record: Annotated[
        Path | None,
        option(
            "--from",
            panel="What is run",
            help="File of JSON records whose runs are made again: old, new and difference.",
        ),
    ] = None,
    jobs: JobOptions,
    encoder: EncoderOptions,
    features_dir: FeaturesDir = FEATURES,
    store: KeepingOptions,
    table: TableOptions,
    scores: Annotated[
        Path | None, _result(help="File for the items of the run (one only): .csv or .h5.")
    ] = None,
    dry_run: DryRun = False,
    live: LiveSettings,
    **settings: Any,
) -> None:
    """Run methods on streams of cached features.

    [bold]zsntta simulate --model tiny --method zs-clip,adand --ood glyphs[/bold]

    [bold]zsntta simulate --model tiny --method adand --ratio 0.25,0.5 --seed 0-2[/bold]

    [bold]zsntta simulate --model tiny --method adand --output table.tex[/bold]

    Live methods (tent, rosita …) encode their images.

    Lists are run in all combinations: --method adand,tda --ratio 0.25,0.5 --seed 0-4. Seeds are
    folded into mean ± std.
    """
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.tables import View, render
    from zsntta_cli.results.runner import Runner
    from zsntta_cli.results.store import Keeping

    of_methods, own = method_settings(wanted.settings or ())
    values = {**settings, **of_methods}
    by_class = table.report == CLASSES
    option = "--scores" if scores else f"--report {CLASSES}" * by_class
    if option and jobs.engine == RAY:
        raise SettingsError(f"{option} is of one run, which is made here: leave --engine ray out.")
    form = form_of(table.output, ENDINGS, table.form, TABLE)
    view = View(
        table.report, table.spread, tuple(table.columns or ()), aggregate=table.aggregate,
        command=command_line(),
    )  # fmt: skip
    form_of(scores, _SCORES, option="--scores")
    choice, reporter = encoder.choice(), ConsoleReporter()
    keeping = Keeping.beside(features_dir, store.file, store.fresh, command_line())
    session = LiveDevices(replace(live, weights=choice.file), reporter)
    runner = Runner(features_dir, jobs.jobs, jobs.engine, session, reporter, keeping)
    recorded: Sequence[Record] = ()
    if record:
        of_set = ["set"] if own or of_methods.keys() - {"no_text"} else []
        beside = [*wanted.given, *encoder.given, *settings, *of_set]
        recorded = _recorded(record, beside, values.get("no_text", ()))
        again = frozenset(one.created for one in recorded)
        runner = replace(runner, keeping=replace(keeping, again=again))
        runs = list(dict.fromkeys(run.settings for run in recorded))
    elif wanted.method:
        from zsntta_cli.results.grid import Grid

        grid = Grid(
            wanted.method, choice, wanted.id_set or (), wanted.ood_set or (), wanted.prompt or (),
            wanted.preset or (), values, own,
        )  # fmt: skip
        runs = grid.runs(features_dir)
        for note in grid.notes(features_dir):
            say(note, err=True)
    else:
        raise SettingsError(
            "say what to run: --method NAME, such as adand, or all; zsntta methods lists them."
        )
    if dry_run:
        say_foresight(features_dir, runs, keeping, ctx.params)
        return
    differing: list[str] = []
    if recorded:
        from zsntta_cli.results.repeating import differences

        differing = differences(features_dir, recorded)
    if by_class or table.output or FORMS[form].of_rows:  # else they stand below the table
        from zsntta_cli.simulation.notes import notes_before

        notes = notes_before(features_dir, runs)
        for note in [*notes, *(f"note: {line}" for line in differing)]:
            say(note, err=True)

    def show(records: "Sequence[Record]") -> None:
        if recorded:
            _show_both(recorded, differing, records, form, view, table.output)
        else:
            put(render(records, form, view, table.output is not None), table.output)

    found: dict[RunSettings, Record] = {}
    replay: Replay | None = None
    try:
        if option:
            replay, made = runner.run_one(runs)
            records = [made]
        else:
            records = runner.run(runs, found)
    except KeyboardInterrupt:
        # A file is whole or absent, so what is finished is shown on the terminal alone.
        records = [] if table.output else [found[run] for run in runs if run in found]
        if records:
            show(records)
        raise
    if scores and replay:
        from zsntta_cli.report.items import write_scores

        write_scores(scores, replay)
    if by_class and replay:
        from zsntta_cli.report.tables import render_classes

        put(render_classes(replay, form, table.output is not None), table.output)
    else:
        show(records)
    stop_if_unfinished(records)


def _recorded(path: Path, beside: "Sequence[str]", no_text: "Sequence[str]") -> "Sequence[Record]":
    """The runs of a file of records, which says all of them but where `no_text` is.

    Raises:
        SettingsError: other options stand beside it, or several files of no-text.
    """
    from zsntta_cli.results.repeating import recorded_runs

    if given := [name.replace("_", "-") for name in beside if name != "no_text"]:
        raise SettingsError(f"--from runs what its records say: leave --{given[0]} out.")
    if len(no_text) > 1:
        raise SettingsError("no-text is one file for the runs of --from: name it once.")
    return recorded_runs(path, no_text[0] if no_text else "")


def _show_both(
    recorded: "Sequence[Record]",
    differing: "Sequence[str]",
    records: "Sequence[Record]",
    form: str,
    view: "View",
    output: Path | None,
) -> None:
    """Print recorded results beside those that came out here, or write them."""
    from zsntta_cli.report.tables import render_both
    from zsntta_cli.results.repeating import outcome, pair_up

    repeated = pair_up(recorded, records)
    said = outcome(repeated)
    if output or FORMS[form].of_rows:
        say(said, err=True)
    put(render_both(repeated, [*differing, said], form, view, output is not None), output)


def stop_if_unfinished(records: "Sequence[Record]") -> None:
    """End as Ctrl-C does, once the results up to it are out."""
    if any(record.unfinished for record in records):
        raise KeyboardInterrupt
