"""Runs by what a legend calls them, and their metrics folded over seeds."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from zsntta_cli.errors import SettingsError
from zsntta_cli.results.frame import PRESET, shown
from zsntta_cli.results.kept import Kept
from zsntta_cli.simulation.runs import RunSettings, preset_of

Pair = tuple[str, str | None]  # ID set, OOD set; of a clean stream none
Groups = dict[str, list[Kept]]  # runs by what a legend calls them

METRICS = {"acc_s": "Acc_S", "acc_n": "Acc_N", "acc_h": "Acc_H"}
ALL_METRICS = {**METRICS, "auroc": "AUROC", "fpr95": "FPR95", "aupr": "AUPR"}
# Settings that decide which samples a method sees, and by which encoder.
_COMPARABLE = ("encoder", "limit", "order", "ood_fill", "rounded_odds")
MOST_LINES = 8  # of one panel: there are no more colours that everybody can tell apart


def all_settings(run: RunSettings) -> dict[str, Any]:
    """All that two runs of a method on an ID set can differ in, by name."""
    of_run = {"encoder": run.encoder, PRESET: preset_of(run), "prompt": run.prompt}
    return {**of_run, **run.flat()}


def grouped(runs: Sequence[Kept], apart: Collection[str] = ()) -> Groups:
    """Runs by method and by the settings in which those of the method differ on an ID set.

    Seeds are one group, and so are values of what is `apart`. What differs with the preset alone is
    told by the preset's name. What makes streams that do not compare is told of all methods.
    """
    left_out = {*apart, "seed"}
    streams = [name for name in _varying(runs, left_out) if name in _COMPARABLE]
    names = {
        method: list(dict.fromkeys([*streams, *_varying(some, left_out)]))
        for method, some in _by_method(runs).items()
    }
    groups: Groups = {}
    for kept in runs:
        groups.setdefault(_called(kept.record.settings, names), []).append(kept)
    return groups


def _called(run: RunSettings, names: Mapping[str, Sequence[str]]) -> str:
    values = all_settings(run)
    told = [name for name in names[run.method] if name != "limit" or values[name] is not None]
    parts = [f"{_label(name)} {shown(name, values.get(name))}" for name in told]
    return ", ".join([run.method, *parts])


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
    """ID-OOD pairs in order of appearance; clean streams only where there is nothing else."""
    named = [(k.record.settings.id_set, k.record.settings.ood_set) for k in runs]
    noisy = dict.fromkeys(pair for pair in named if pair[1] is not None)
    return list(noisy or dict.fromkeys(named))


def on_pair(runs: Sequence[Kept], pair: Pair) -> list[Kept]:
    """Runs on a pair, and the clean streams of its ID set."""
    return [
        kept
        for kept in runs
        if kept.record.settings.id_set == pair[0]
        and kept.record.settings.ood_set in (pair[1], None)
    ]


def by_pair(runs: Sequence[Kept], apart: Collection[str] = ()) -> Iterator[tuple[Pair, Groups]]:
    """The groups that there are on each pair, called alike on all."""
    groups = grouped(runs, apart)
    for pair in pairs(runs):
        on = {name: on_pair(some, pair) for name, some in groups.items()}
        yield pair, {name: some for name, some in on.items() if some}


def pair_title(pair: Pair) -> str:
    """A pair as a title has it."""
    return " / ".join(name for name in pair if name)


def metric(kept: Kept, name: str) -> float:
    """A metric of a run, a fraction; nan where it has none."""
    return kept.record.metric(name)


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
