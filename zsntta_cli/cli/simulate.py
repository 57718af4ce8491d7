"""`zsntta simulate`: methods on streams of cached features."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import (
    DRY_RUN,
    RARE,
    EncoderOptions,
    JobOptions,
    KeepingOptions,
    Names,
    method_settings,
    option,
)
from zsntta_cli.cli.output import TableOutput, command_line, form_of, put, say_foresight
from zsntta_cli.cli.values import cached_sets, known_methods, names, texts
from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import RAY, LiveSettings
from zsntta_cli.simulation.runs import PRESETS

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record
    from zsntta_cli.simulation.runs import RunSettings

CLASSES = "classes"  # a report of one run
_SCORES = {".csv": "csv"}
_wanted = partial(option, None, panel="What to run")
_result = partial(option, panel="Output")


def simulate(
    *,
    ctx: typer.Context,
    method: Names = _wanted(
        "Methods, such as adand,tda, or 'all' but live ones. zsntta methods lists them.",
        reader=names, autocompletion=known_methods,
    ),
    id_set: Names = _wanted(
        "ID set. [cifar10; with tiny, shapes]", "--id", reader=names, autocompletion=cached_sets
    ),
    ood_set: Names = _wanted(
        "OOD set, or 'all' for every cached one. [the cached partners]", "--ood", reader=names,
        autocompletion=cached_sets,
    ),
    preset: Names = _wanted(
        f"Named settings: {', '.join(PRESETS)} (docs/methods.md). [paper]", reader=names
    ),
    prompt: Names = _wanted(
        "Cached template, or 'code', 'clip-80' or a prompt file's name. [the set's]",
        metavar="TEMPLATE",
    ),
    own: Names = _wanted(
        "Setting of every method that has it, such as warmup=5,10, or of one, such as tda.shift=3. "
        "zsntta methods show NAME lists them. All methods have these (docs/streams.md): "
        f"{', '.join(RARE)}.",
        "--set", metavar="NAME=VALUE",
    ),
    record: Path | None = _wanted(
        "File of JSON records whose runs to repeat; old and new results are compared.", "--from"
    ),
    jobs: JobOptions,
    encoder: EncoderOptions,
    store: KeepingOptions,
    report: Literal["accuracy", "ood", "flags", "open-set", "calibration", "classes"] = _result(
        "accuracy",
        "Contents of the table: accuracy, ood, flags, open-set, calibration, or classes for one "
        "run with a row per class.", metavar="NAME",
    ),
    spread: Literal["seeds", "sets"] = _result(
        "seeds", "± of an average: its own over seeds, or the mean of the sets' ±, as in the paper."
    ),
    columns: Names = _result(
        None, "Metrics to show instead of the report's, such as acc_h,auroc.", reader=texts
    ),
    aggregate: bool = _result(
        False, "In csv and json, write the table's means and averages instead of the runs.",
        "--aggregate",
    ),
    table: TableOutput,
    scores: Path | None = _result(
        None, "CSV file to write the items of a single run to."
    ),
    dry_run: bool = DRY_RUN,
    live: LiveSettings,
    **settings: Any,
) -> None:  # fmt: skip
    """Run methods on streams of cached features.

    [bold]zsntta simulate --model tiny --method zs-clip,adand --ood glyphs[/bold]

    [bold]zsntta simulate --model tiny --method adand --ratio 0.25,0.5 --seed 0-2[/bold]

    [bold]zsntta simulate --model tiny --method adand --output table.tex[/bold]

    Live methods (tent, rosita …) encode images while they run.

    Lists are run in all combinations: --method adand,tda --ratio 0.25,0.5 --seed 0-4. The results
    of several seeds are shown as mean ± standard deviation.
    """
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.tables import View, render
    from zsntta_cli.results.runner import Runner

    of_methods, of_one = method_settings(own)
    values, form = {**settings, **of_methods}, table.form or ""
    form_of(scores, _SCORES, option="--scores")
    single = "--scores" if scores else f"--report {CLASSES}" * (report == CLASSES)
    if single and jobs.engine == RAY:
        raise SettingsError(f"{single} is for one run, which is made here: omit --engine ray.")
    view = View(report, spread, tuple(columns or ()), aggregate=aggregate, command=command_line())
    choice, root, to_file = encoder.choice(), store.features_dir, table.output is not None
    keeping, reporter = store.keeping(), ConsoleReporter()
    recorded: Sequence[Record] = ()
    if record:
        beside = {
            "method": method, "id": id_set, "ood": ood_set, "preset": preset, "prompt": prompt,
            **encoder.given, **settings, "set": own,
        }  # fmt: skip
        recorded = _recorded(record, beside)
        keeping = replace(keeping, again=frozenset(one.created for one in recorded))
        runs = list(dict.fromkeys(one.settings for one in recorded))
    elif method:
        from zsntta_cli.results.grid import Grid

        grid = Grid(
            method, choice, id_set or (), ood_set or (), prompt or (), preset or (), values, of_one
        )
        runs = grid.runs(root)
        for note in grid.notes(root):
            say(note, err=True)
    else:
        raise SettingsError(
            "specify what to run: --method NAME, such as adand, or all; zsntta methods lists them."
        )
    live = replace(live, weights=choice.file)
    runner = Runner(root, jobs.jobs, jobs.engine, live, reporter, keeping)
    if dry_run:
        say_foresight(root, runs, keeping, ctx.params)
        return
    differing: list[str] = []
    if recorded:
        from zsntta_cli.results.repeating import differences

        differing = differences(root, recorded)
    if report == CLASSES or not table.has_notes:  # else they stand below the table
        from zsntta_cli.simulation.notes import notes_before

        for note in [*notes_before(root, runs), *(f"note: {one}" for one in differing)]:
            say(note, err=True)

    def show(records: "Sequence[Record]") -> None:
        if not recorded:
            put(render(records, form, view, to_file), table.output)
            return
        from zsntta_cli.report.tables import render_both
        from zsntta_cli.results.repeating import outcome, pair_up

        repeated = pair_up(recorded, records)
        lines = [*differing, outcome(repeated)]
        if not table.has_notes:
            say(lines[-1], err=True)
        put(render_both(repeated, lines, form, view, to_file), table.output)

    found: dict[RunSettings, Record] = {}
    try:
        if single:
            replay, one = runner.run_one(runs)
            records = [one]
        else:
            records = runner.run(runs, found)
    except KeyboardInterrupt:
        # A file is whole or absent, so what is finished is shown on the terminal alone.
        if found and not to_file:
            show([found[run] for run in runs if run in found])
        raise
    if scores:
        from zsntta_cli.report.items import write_scores

        write_scores(scores, replay)
    if report == CLASSES:
        from zsntta_cli.report.tables import render_classes

        put(render_classes(replay, form, to_file), table.output)
    else:
        show(records)
    stop_if_unfinished(records)


def _recorded(path: Path, beside: dict[str, Any]) -> "Sequence[Record]":
    """The runs of a file of records.

    Raises:
        SettingsError: options that say what is run stand beside it.
    """
    from zsntta_cli.results.repeating import recorded_runs

    if given := [name.replace("_", "-") for name, value in beside.items() if value]:
        raise SettingsError(f"--from repeats the runs of its records: omit --{given[0]}.")
    return recorded_runs(path)


def stop_if_unfinished(records: "Sequence[Record]") -> None:
    """End as Ctrl-C does if a run is unfinished, once the finished results are out."""
    if any(map(attrgetter("unfinished"), records)):
        raise KeyboardInterrupt
