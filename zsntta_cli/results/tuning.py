"""Settings chosen on some pairs of sets and reported on others, so that no choice sees its test.

Each row of a grid, a method with one value of every setting but the seed and those to be tuned, is
tuned by itself: all combinations of the candidates are run on all pairs to tune on, and the one
with the best mean is run on the pairs to report on. The mean is the frame's average over pairs. Of
equal means the first wins, in the order of the candidates, with the last setting changing fastest.

A run's numbers do not depend on how its settings were chosen, so the key of a kept run does not
either. Its record has the choice in `tuning`, from the last time it was reported as tuned.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.cache.folder import find, folder_name
from zsntta_cli.datasets.names import check_plain
from zsntta_cli.errors import SettingsError, StoreError, UnknownName
from zsntta_cli.methods import METHODS
from zsntta_cli.results import frame
from zsntta_cli.results.grid import Axes, Grid, Pair, axes_of
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.results.kept import run_key
from zsntta_cli.results.store import RecordStore
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.options import check_choice, option_name
from zsntta_cli.settings.ratios import Ratio, parse_ratio
from zsntta_cli.simulation.metrics import METRICS, ranked_metrics
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, declared, setting_names

SEED = "seed"
_OF_STREAM = {SEED, *frame.OF_STREAM}  # what would change the samples that are judged
RunAll = Callable[[Sequence[RunSettings]], Sequence[Record]]
Tunings = Mapping[RunSettings, "Tuning | None"]  # None where nothing was to be chosen


class TuningPair(NamedTuple):
    """A pair on which settings were chosen."""

    id_set: str
    ood_set: str
    ratio: Ratio
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Tuning:
    """How the settings of a run were chosen."""

    settings: Mapping[str, Any]  # what was chosen, by name
    candidates: Mapping[str, Sequence[Any]]
    by: str  # the metric
    value: float  # its mean over the pairs, of what was chosen
    values: Sequence[float]  # of all combinations, the last setting's values changing fastest
    on: Sequence[TuningPair]
    digests: Mapping[str, str]  # of the features of these pairs

    def to_dict(self) -> dict[str, Any]:
        """The tuning in a record, as plain values."""
        names = ("id", "ood", "ratio", "seeds")
        on = [dict(zip(names, (*pair[:3], list(pair.seeds)), strict=True)) for pair in self.on]
        candidates = {name: list(values) for name, values in self.candidates.items()}
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**fields, "candidates": candidates, "values": list(self.values), "on": on}


def tuning_of(record: Record) -> Tuning | None:
    """How the settings of a record's run were chosen; None if the record does not say so."""
    plain = record.tuning
    try:
        on = [
            TuningPair(
                pair["id"], pair["ood"], parse_ratio(str(pair["ratio"])), tuple(pair["seeds"])
            )
            for pair in plain["on"]
        ]
        for name in itertools.chain.from_iterable(pair[:2] for pair in on):
            check_plain("set", name)
        candidates = {str(name): list(values) for name, values in plain["candidates"].items()}
        values = [float(value) for value in plain.get("values", ())]
        return Tuning(
            dict(plain["settings"]), candidates, str(plain["by"]), float(plain["value"]), values,
            on, dict(plain.get("digests", {})),
        )  # fmt: skip
    except (AttributeError, LookupError, TypeError, ValueError, SettingsError):
        return None  # records come from elsewhere, too


def tuned_on(record: Record) -> str:
    """The pairs on which a run's settings were chosen, as typed; empty if they were not."""
    tuning = tuning_of(record)
    return ",".join(f"{pair.id_set}+{pair.ood_set}" for pair in tuning.on) if tuning else ""


@dataclass(frozen=True)
class TuningPlan:
    """Which settings are chosen on which pairs, and the pairs to report on."""

    tune_on: Sequence[Pair]
    report_on: Sequence[Pair]
    axes: Axes = field(default_factory=dict)  # the candidates of all methods that have a setting
    own: Mapping[str, Axes] = field(default_factory=dict)  # by method: candidates for it alone
    by: str = "acc_h"

    def __post_init__(self) -> None:
        """Check it.

        Raises:
            SettingsError: no pair, no setting, a single candidate, or a setting of the stream.
        """
        if self.by not in ranked_metrics():
            raise UnknownName("tune-by", self.by, ranked_metrics())
        for what, pairs in (("tune", self.tune_on), ("report", self.report_on)):
            if not pairs:
                raise SettingsError(f"no pair of sets is named to {what} on.")
            for id_set, ood_set in pairs:
                if id_set == ood_set:
                    raise SettingsError(f"'{id_set}' cannot be its own OOD set.")
        every_axis = [axis for axes in (self.axes, *self.own.values()) for axis in axes.items()]
        if not every_axis:
            raise SettingsError("no setting is named to be tuned.")
        for name, candidates in every_axis:
            _check_candidates(name, candidates)


def _check_candidates(name: str, candidates: Sequence[Any]) -> None:
    check_choice("setting", name, setting_names())
    if name in _OF_STREAM:
        raise SettingsError(
            f"{_option(name)} is a setting of the stream, not of a method or its threshold: "
            f"no method may choose the samples by which it is judged."
        )
    if len(set(candidates)) < 2:
        raise SettingsError(f"{_option(name)} has one value to choose from, must have two or more.")


def _option(name: str) -> str:
    """The name of a setting on the command line."""
    return next(option_name(declared(m)[name]) for m in METHODS if name in declared(m))


def choose(root: Path, grid: Grid, plan: TuningPlan, run_all: RunAll) -> Tunings:
    """The runs to report, each with how its settings were chosen.

    `grid` has methods, presets, prompts and the settings that are not tuned; `run_all` computes the
    records of runs. A method that has none of the tuned settings is reported as it is.

    Raises:
        SettingsError: a setting that no method has or that also has a value in the grid, or a
            metric without a value. MissingFeatures: a set that is not cached.
    """
    rows = _checked_rows(root, grid, plan)
    names = [name for pair in (*plan.tune_on, *plan.report_on) for name in pair]
    find(root, names, folder_name(root, grid.encoder))
    candidate_runs = [row.candidate_runs(root) for row in rows]
    records = {
        record.settings: record
        for record in run_all(list(dict.fromkeys(itertools.chain.from_iterable(candidate_runs))))
    }
    if any(record.unfinished for record in records.values()):
        raise KeyboardInterrupt  # it stopped a live run, and of part of a run nothing is chosen
    tunings: dict[RunSettings, Tuning | None] = {}
    for row, runs in zip(rows, candidate_runs, strict=True):
        tuning = row.tuning([records[run] for run in runs]) if row.candidates else None
        for run in row.runs(root, plan.report_on, tuning.settings if tuning else {}):
            tunings.setdefault(run, tuning)
    return tunings


def foreseen_runs(
    root: Path, grid: Grid, plan: TuningPlan
) -> tuple[list[RunSettings], list[RunSettings]]:
    """All candidates' runs on the pairs to tune on, and as many runs as would be reported.

    The latter have the first candidates, as the choice is not known before the runs.

    Raises:
        SettingsError: a setting that no method has, or that also has a value in the grid.
    """
    rows = _checked_rows(root, grid, plan)
    candidates = dict.fromkeys(run for row in rows for run in row.candidate_runs(root))
    reported = dict.fromkeys(
        run
        for row in rows
        for run in row.runs(root, plan.report_on, {n: v[0] for n, v in row.candidates.items()})
    )
    return list(candidates), list(reported)


def _checked_rows(root: Path, grid: Grid, plan: TuningPlan) -> "list[TuningRow]":
    replace(grid, axes=plan.axes, own=plan.own).check_settings()
    grid.check_settings()
    choice = EncoderChoice(folder=folder_name(root, grid.encoder))
    return list(_rows(replace(grid, encoder=choice), plan))


def _rows(grid: Grid, plan: TuningPlan) -> Iterator["TuningRow"]:
    """The rows of a grid; the settings of each row are chosen together."""
    for method in grid.methods:
        candidates, axes = axes_of(method, plan.axes, plan.own), grid.axes_of(method)
        if both := [name for name in candidates if name in axes]:
            raise SettingsError(f"{_option(both[0])} is to be tuned, so it cannot have a value.")
        seeds = {name: axes.pop(name) for name in (SEED,) if name in axes}
        prompts: Sequence[Sequence[str]] = [[prompt] for prompt in grid.prompts] or [()]
        for preset, prompt, values in itertools.product(
            grid.presets or ["paper"], prompts, itertools.product(*axes.values())
        ):
            fixed = {name: [value] for name, value in zip(axes, values, strict=True)}
            row = replace(
                grid, methods=[method], presets=[preset], prompts=prompt,
                axes={**fixed, **seeds}, own={},
            )  # fmt: skip
            yield TuningRow(row, candidates, plan)


@dataclass(frozen=True)
class TuningRow:
    """A method with one value of every setting but the seed and those to be chosen."""

    grid: Grid
    candidates: Axes
    plan: TuningPlan

    def candidate_runs(self, root: Path) -> list[RunSettings]:
        """All candidates on all pairs to tune on; empty if there is nothing to choose."""
        return self._runs(root, self.plan.tune_on, self.candidates) if self.candidates else []

    def runs(
        self, root: Path, pairs: Sequence[Pair], settings: Mapping[str, Any]
    ) -> list[RunSettings]:
        """Its runs on some pairs with the chosen settings."""
        return self._runs(root, pairs, {name: [value] for name, value in settings.items()})

    def _runs(self, root: Path, pairs: Sequence[Pair], axes: Axes) -> list[RunSettings]:
        return replace(self.grid, pairs=pairs, axes={**self.grid.axes, **axes}).runs(root)

    def tuning(self, records: Sequence[Record]) -> Tuning:
        """The choice by the records of all candidates.

        Raises:
            SettingsError: the metric has no value.
        """
        plan, by_choice = self.plan, dict[tuple[Any, ...], list[Record]]()
        for record in records:
            flat = record.settings.flat()
            choice = tuple(flat[name] for name in self.candidates)
            by_choice.setdefault(choice, []).append(record)
        means = {choice: self._mean(group) for choice, group in by_choice.items()}
        best = (min if METRICS[plan.by].lower_is_better else max)(means, key=lambda c: means[c])
        ratio = records[0].settings.stream.ratio
        seeds = tuple(sorted({record.settings.stream.seed for record in records}))
        return Tuning(
            settings=dict(zip(self.candidates, best, strict=True)),
            candidates={k: list(dict.fromkeys(values)) for k, values in self.candidates.items()},
            by=plan.by,
            value=means[best],
            values=list(means.values()),
            on=[TuningPair(*pair, ratio, seeds) for pair in plan.tune_on],
            digests={k: v for record in records for k, v in record.digests.items()},
        )

    def _mean(self, records: Sequence[Record]) -> float:
        """The average of one combination over the pairs."""
        by_pair = {
            pair: {
                record.settings.stream.seed: record.metric(self.plan.by)
                for record in records
                if record.settings.id_set == pair[0]
                and record.settings.ood_set in (pair[1], None)  # clean streams stand for all
            }
            for pair in self.plan.tune_on
        }
        mean = frame.average(by_pair).mean
        if math.isnan(mean):
            head, method = METRICS[self.plan.by].head, records[0].settings.method
            raise SettingsError(
                f"{method} has no {head} on these pairs, so nothing can be chosen by it",
                remedy="tune-by",
            )
        return mean


def with_tunings(
    records: Sequence[Record],
    tunings: Tunings,
    keeping: Keeping | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> list[Record]:
    """Add to records how their settings were chosen here, and update kept ones likewise.

    The returned record of a run that was not tuned here has no tuning, even if the kept one has.
    """
    plain = {run: tuning.to_dict() for run, tuning in tunings.items() if tuning}
    reported = [replace(record, tuning=plain.get(record.settings, {})) for record in records]
    tuned = [record for record in reported if record.tuning and not record.unfinished]
    if keeping and tuned and keeping.path.exists():
        try:
            _keep(keeping.path, tuned)
        except StoreError as error:  # a read-only store: the results are worth more
            note(f"note: how settings were chosen is not kept: {error}")
    return reported


def _keep(path: Path, records: Sequence[Record]) -> None:
    """Write to kept runs how their settings were chosen."""
    tunings = {run_key(r.settings, r.digests, r.revision): r.tuning for r in records}
    with RecordStore(path) as store:
        changed = [
            replace(kept, record=replace(kept.record, tuning=tunings[key]))
            for key, kept in store.find(list(tunings)).items()
            if kept.record.tuning != tunings[key]
        ]
        if changed:
            store.add(changed)
