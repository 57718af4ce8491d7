"""`zsntta simulate`: methods on streams of cached features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from zsntta_cli.cli.values import names, texts
from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import RAY, LiveSettings
from zsntta_cli.simulation.runs import PRESETS

if TYPE_CHECKING:
    from zsntta_cli.report.tables import View
    from zsntta_cli.results.grid import Grid
    from zsntta_cli.simulation.record import Record
    from zsntta_cli.simulation.runs import RunSettings

CLASSES = "classes"  # a report of one run
_wanted = partial(option, None, panel="What to run")
_result = partial(option, panel="Output")


@dataclass(frozen=True)
class RunOptions:
    """Options that say what is run: lists, of which all combinations are, or recorded runs."""

    method: Names = _wanted(
        "Methods, such as adand,tda, or 'all' except live ones. zsntta methods lists them.",
        reader=names,
    )  # fmt: skip
    id_set: Names = _wanted("ID set. [cifar10; with tiny, shapes]", "--id", reader=names)
    ood_set: Names = _wanted(
        "OOD set, or 'all' for every cached one. [the cached partners]", "--ood", reader=names
    )  # fmt: skip
    preset: Names = _wanted(
        f"Named settings: {', '.join(PRESETS)} (docs/methods.md). [paper]", reader=names
    )
    prompt: Names = _wanted(
        "Cached template, or a name such as 'code', 'clip-80' or 'photos'. [the set's]",
        metavar="TEMPLATE",
    )
    assignments: Names = _wanted(
        "Setting of every method that has it, such as warmup=5,10, or of one, such as "
        "tda.positive-shots=5. zsntta methods show NAME lists them. All methods have these "
        f"(docs/streams.md): {', '.join(RARE)}.",
        "--set", metavar="NAME=VALUE",
    )  # fmt: skip
    record: Path | None = _wanted(
        "File of exported runs to repeat. Old and new results are compared.", "--from"
    )

    def grid(self, encoder: EncoderOptions, settings: Mapping[str, Any]) -> "Grid":
        """The runs of all combinations.

        Raises:
            SettingsError: no method is named, or a setting is wrong.
        """
        from zsntta_cli.results.grid import Grid

        of_methods, of_one = method_settings(self.assignments)
        if not self.method:
            raise SettingsError(
                "specify what to run: --method NAME, such as adand, or all; zsntta methods lists "
                "them."
            )
        return Grid(
            self.method, encoder.choice(), self.id_set or (), self.ood_set or (),
            self.prompt or (), self.preset or (), {**settings, **of_methods}, of_one,
        )  # fmt: skip

    def recorded(self, encoder: EncoderOptions, settings: Mapping[str, Any]) -> "Sequence[Record]":
        """The records whose runs are repeated.

        Raises:
            SettingsError: other options say what is run, too.
            StoreError: the file holds no records.
        """
        from zsntta_cli.results.repeating import recorded_runs

        assert self.record
        options = {
            "method": self.method, "preset": self.preset, "prompt": self.prompt, "id": self.id_set,
            "ood": self.ood_set, "set": self.assignments, **encoder.given, **settings,
        }  # fmt: skip
        if name := next((name for name, value in options.items() if value), ""):
            name = name.replace("_", "-")
            raise SettingsError(f"--from repeats the runs of its records: omit --{name}.")
        return recorded_runs(self.record)


@dataclass(frozen=True)
class ViewOptions:
    """Options that say what the table of results shows."""

    report: Literal["accuracy", "ood", "flags", "open-set", "calibration", "classes"] = _result(
        "accuracy",
        "Contents of the table: accuracy, ood, flags, open-set, calibration, or classes (one "
        "run, with a row per class).", metavar="NAME",
    )  # fmt: skip
    spread: Literal["seeds", "sets"] = _result(
        "seeds", "± of an average: its own over seeds, or the mean of the sets' ±, as in the paper."
    )
    columns: Names = _result(
        None, "Metrics to show instead of the report's, such as acc_h,auroc.", reader=texts
    )
    aggregate: bool = _result(
        False, "In csv and json, write the table's means and averages instead of the runs.",
        "--aggregate",
    )  # fmt: skip

    def view(self) -> "View":
        """What tables show.

        Raises:
            SettingsError: there is no metric of that name.
        """
        from zsntta_cli.report.tables import View

        metrics, command = tuple(self.columns or ()), command_line()
        return View(self.report, self.spread, metrics, aggregate=self.aggregate, command=command)


def simulate(
    *,
    ctx: typer.Context,
    what: RunOptions,
    jobs: JobOptions,
    encoder: EncoderOptions,
    store: KeepingOptions,
    contents: ViewOptions,
    table: TableOutput,
    scores: Path | None = _result(None, "CSV file for the scores of each item of a single run."),
    dry_run: bool = DRY_RUN,
    live: LiveSettings,
    **settings: Any,
) -> None:
    """Run methods on streams of cached features.

    [bold]zsntta simulate --model tiny --method zs-clip,adand --ood glyphs[/bold]

    [bold]zsntta simulate --model tiny --method adand --ratio 0.25,0.5 --seed 0-2[/bold]

    [bold]zsntta simulate --model tiny --method adand --output table.tex[/bold]

    Live methods (tent, rosita …) encode images while they run.

    Lists are run in all combinations: --method adand,tda --ratio 0.25,0.5 --seed 0-4. The results
    of several seeds are shown as mean ± standard deviation.
    """
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.tables import render, render_classes, render_repeated
    from zsntta_cli.results.runner import Runner

    form_of(scores, {".csv": "csv"}, option="--scores")
    is_by_class = contents.report == CLASSES
    single = "--scores" if scores else f"--report {CLASSES}" * is_by_class
    if single and jobs.engine == RAY:
        raise SettingsError(f"{single} is for one run on this machine: omit --engine ray.")
    view, form, to_file = contents.view(), table.form or "", table.output is not None
    root, keeping, notes = store.features_dir, store.keeping(), list[str]()
    recorded: Sequence[Record] = ()
    if what.record:
        recorded = what.recorded(encoder, settings)
        keeping = replace(keeping, again=frozenset(record.created for record in recorded))
        runs = list(dict.fromkeys(record.settings for record in recorded))
    else:
        grid = what.grid(encoder, settings)
        runs = grid.runs(root)
        for note in grid.notes(root):
            say(note, err=True)
    live = replace(live, weights=encoder.choice().file)
    runner = Runner(root, jobs.jobs, jobs.engine, live, ConsoleReporter(), keeping)
    if dry_run:
        say_foresight(root, runs, keeping, ctx.params)
        return
    if recorded:
        from zsntta_cli.results.repeating import differences, outcome, pair_up

        notes = differences(root, recorded)
    if is_by_class or not table.has_notes:  # else they are below the table
        from zsntta_cli.simulation.notes import notes_before

        for note in [*notes_before(root, runs), *(f"note: {text}" for text in notes)]:
            say(note, err=True)

    finished: dict[RunSettings, Record] = {}
    is_whole = True
    try:
        if single:
            replay, record = runner.run_one(runs)
            records = [record]
        else:
            records = runner.run(runs, finished)
    except KeyboardInterrupt:
        # A file is whole or absent, so what is finished is shown on the terminal alone.
        if to_file or not finished:
            raise
        records, is_whole = [finished[run] for run in runs if run in finished], False
    if scores:
        from zsntta_cli.report.items import write_scores

        write_scores(scores, replay)
    if is_by_class:
        text = render_classes(replay, form, to_file)
    elif recorded:
        repeated = pair_up(recorded, records)
        notes.append(outcome(repeated))
        if not table.has_notes:
            say(notes[-1], err=True)
        text = render_repeated(repeated, notes, form, view, to_file)
    else:
        text = render(records, form, view, to_file)
    put(text, table.output)
    if not is_whole or any(map(attrgetter("unfinished"), records)):
        raise KeyboardInterrupt  # once the finished results are out
