"""Which runs a figure shows, and what its legend calls them."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.titles import PRESET, shown
from zsntta_cli.simulation.records.kept import Kept
from zsntta_cli.simulation.runs import RunSettings, preset_of

Pair = tuple[str, str | None]  # ID set, OOD set; of a clean stream none
Groups = dict[str, list[Kept]]  # runs by what a legend calls them

MOST_LINES = 8  # of one panel: there are no more colours that everybody can tell apart
_USUAL_RATIO = 0.5  # the paper's


@dataclass(frozen=True)
class Filters:
    """Which kept runs are wanted; nothing given means all."""

    methods: Sequence[str] = ()
    id_sets: Sequence[str] = ()
    ood_sets: Sequence[str] = ()  # a clean stream is one for all OOD sets
    ratios: Sequence[float] = ()
    seeds: Sequence[int] = ()
    encoders: Sequence[str] = ()
    settings: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by name, as shown


def chosen(runs: Sequence[Kept], filters: Filters) -> list[Kept]:
    """The runs that fit.

    Raises:
        SettingsError: none does; it says what is there.
    """
    if not runs:
        raise SettingsError("there are no kept runs to plot", remedy="simulate")
    by_name: dict[str, tuple[Callable[[RunSettings], Any], Sequence[Any]]] = {
        "method": (lambda run: run.method, filters.methods),
        "id": (lambda run: run.id_set, filters.id_sets),
        "ood": (lambda run: run.ood_set, filters.ood_sets),
        "ratio": (lambda run: run.stream.ratio, filters.ratios),
        "seed": (lambda run: run.stream.seed, filters.seeds),
        "encoder": (lambda run: run.encoder, filters.encoders),
    }
    left = list(runs)
    for name, (value, wanted) in by_name.items():
        if wanted:
            passes = {*wanted, None} if name == "ood" and set(wanted) & _there(left, value) else {*wanted}
            left = _fitting(left, name, value, passes)
    for name, texts in filters.settings.items():
        left = _fitting(left, name, lambda run, name=name: _text(run, name), {*texts})
    return left


def _there(runs: Sequence[Kept], value: Callable[[RunSettings], Any]) -> set[Any]:
    return {value(kept.record.settings) for kept in runs} - {None}


def _fitting(
    runs: Sequence[Kept], name: str, value: Callable[[RunSettings], Any], wanted: Collection[Any]
) -> list[Kept]:
    """The runs with a wanted value."""
    left = [kept for kept in runs if value(kept.record.settings) in wanted]
    if not left:
        there = ", ".join(str(one) for one in sorted(_there(runs, value))) or "none"
        asked = ", ".join(str(one) for one in wanted)
        raise SettingsError(f"no kept run that fits has {name} {asked}: there is {there}.")
    return left


def _text(run: RunSettings, name: str) -> str | None:
    """A setting's value as it is shown and typed; None of a run that does not have it."""
    settings = all_settings(run)
    return shown(name, settings[name]) if name in settings else None


def all_settings(run: RunSettings) -> dict[str, Any]:
    """All that two runs of a method on an ID set can differ in, by name."""
    of_run = {"encoder": run.encoder, PRESET: preset_of(run), "prompt": run.prompt}
    return {**of_run, **run.flat()}


def usual(runs: Sequence[Kept], filters: Filters, keep: Collection[str] = ()) -> list[Kept]:
    """Runs with one ratio, and with adaptive thresholds, where nothing else was asked for.

    `keep` names the settings of which a figure shows several.
    """
    left = list(runs)
    if "ratio" not in keep and not filters.ratios:
        ratios = sorted({kept.record.settings.stream.ratio for kept in left})
        above = [ratio for ratio in ratios if ratio > 0] or ratios
        one = _USUAL_RATIO if _USUAL_RATIO in above else above[0]
        left = [kept for kept in left if kept.record.settings.stream.ratio == one]
    if "fixed" not in keep and "fixed" not in filters.settings:
        left = [k for k in left if k.record.settings.threshold.fixed is None] or left
    return left


def grouped(runs: Sequence[Kept], apart: Collection[str] = ()) -> Groups:
    """Runs by method and by the settings in which those of the method differ on an ID set.

    Seeds are one group, and so are values of what is `apart`. What differs with the preset alone is
    told by the preset's name.
    """
    names = {method: _varying(some, {*apart, "seed"}) for method, some in _by_method(runs).items()}
    groups: Groups = {}
    for kept in runs:
        run = kept.record.settings
        values = all_settings(run)
        parts = [f"{_label(name)} {shown(name, values.get(name))}" for name in names[run.method]]
        groups.setdefault(", ".join([run.method, *parts]), []).append(kept)
    return groups


def _by_method(runs: Sequence[Kept]) -> Groups:
    methods: Groups = {}
    for kept in runs:
        methods.setdefault(kept.record.settings.method, []).append(kept)
    return methods


def _varying(runs: Sequence[Kept], apart: Collection[str]) -> list[str]:
    """Names of the settings that differ between runs of one method on one ID set."""
    seen: dict[str, dict[tuple[str, ...], set[Any]]] = {}
    for kept in runs:
        settings = all_settings(kept.record.settings)
        for name, value in settings.items():
            group = (kept.record.settings.id_set, *([] if name == PRESET else [settings[PRESET]]))
            seen.setdefault(name, {}).setdefault(group, set()).add(value)
    differing = [name for name, values in seen.items() if any(len(v) > 1 for v in values.values())]
    return [name for name in differing if name not in apart]


def _label(name: str) -> str:
    return {"fixed": "threshold", "ratio": "noise"}.get(name, name.replace("_", " "))


def pairs(runs: Sequence[Kept]) -> list[Pair]:
    """ID-OOD pairs in order of appearance; clean streams are a pair of their own if nothing else."""
    named = [(k.record.settings.id_set, k.record.settings.ood_set) for k in runs]
    return list(dict.fromkeys(pair for pair in named if pair[1] is not None)) or list(
        dict.fromkeys(named)
    )


def on_pair(runs: Sequence[Kept], pair: Pair) -> list[Kept]:
    """Runs on a pair, and the clean streams of its ID set."""
    return [
        kept
        for kept in runs
        if kept.record.settings.id_set == pair[0]
        and kept.record.settings.ood_set in (pair[1], None)
    ]


def pair_title(pair: Pair) -> str:
    """A pair as a title has it."""
    return " / ".join(name for name in pair if name)


def metric(kept: Kept, name: str) -> float:
    """A metric of a run, a fraction; nan where it has none."""
    record = kept.record
    [group] = [g for g in (record.accuracies, record.detection, record.flags) if hasattr(g, name)]
    return float(getattr(group, name))


def folded(runs: Sequence[Kept], name: str) -> tuple[float, float]:
    """Mean and sample deviation over seeds of a metric, in percent; nan where there is none."""
    values = [100 * metric(kept, name) for kept in runs]
    return mean_std([value for value in values if not math.isnan(value)])


def mean_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample deviation; of a single value 0, of none nan."""
    if not values:
        return math.nan, math.nan
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def first_seed(runs: Sequence[Kept]) -> Kept:
    """Of runs that differ in their seeds, the one that a figure of a single run shows."""
    return min(runs, key=lambda kept: kept.record.settings.stream.seed)


def check_lines(count: int, what: str = "lines") -> None:
    """Refuse what nobody could tell apart.

    Raises:
        SettingsError: it says how many there are.
    """
    if count > MOST_LINES:
        raise SettingsError(
            f"{count} {what} in one panel are too many, {MOST_LINES} at most", remedy="fewer-lines"
        )


def latest(runs: Sequence[Kept]) -> tuple[list[Kept], list[str]]:
    """Of runs with the same settings the one kept last, and of runs on other features none.

    Features are those of the run kept last on a set; a note says how many runs are left out.
    """
    one: dict[RunSettings, Kept] = {}
    for kept in runs:
        one.pop(kept.record.settings, None)  # the newer one takes its place at the end
        one[kept.record.settings] = kept
    newest = {place: digest for kept in one.values() for place, digest in _features(kept)}
    left = [k for k in one.values() if all(newest[place] == digest for place, digest in _features(k))]
    lost = len(runs) - len(left)
    note = f"{lost:,} older runs are left out: their features or methods were made anew since"
    return left, [note] * bool(lost)


def _features(kept: Kept) -> list[tuple[tuple[str, str], str]]:
    """Digests of the image features that a run saw, by encoder and set."""
    encoder, digests = kept.record.settings.encoder, kept.record.digests
    return [((encoder, n), d) for n, d in digests.items() if not n.startswith("text/")]
