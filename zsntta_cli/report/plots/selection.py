"""Which runs a figure shows."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zsntta_cli.datasets import CATALOGUE
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import method_place
from zsntta_cli.report.plots.groups import all_settings
from zsntta_cli.results.frame import shown
from zsntta_cli.results.kept import Kept
from zsntta_cli.simulation.runs import RunSettings

Value = Callable[[RunSettings], Any]

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
    left = list(runs)
    for name, (value, wanted) in _by_name(filters).items():
        clean = {None} if name == "ood" and _there(left, value) & {*wanted} else set()
        left = _fitting(left, name, value, {*wanted, *clean}) if wanted else left
    for name, texts in filters.settings.items():
        left = _fitting(left, name, functools.partial(_text, name), {*texts})
    return left


def _by_name(filters: Filters) -> dict[str, tuple[Value, Sequence[Any]]]:
    """What runs are chosen by: a value of theirs, and those wanted."""
    return {
        "method": (lambda run: run.method, filters.methods),
        "id": (lambda run: run.id_set, filters.id_sets),
        "ood": (lambda run: run.ood_set, filters.ood_sets),
        "ratio": (lambda run: run.stream.ratio, filters.ratios),
        "seed": (lambda run: run.stream.seed, filters.seeds),
        "encoder": (lambda run: run.encoder, filters.encoders),
    }


def _there(runs: Sequence[Kept], value: Value) -> set[Any]:
    return {value(kept.record.settings) for kept in runs} - {None}


def _fitting(runs: Sequence[Kept], name: str, value: Value, wanted: Collection[Any]) -> list[Kept]:
    """The runs with a wanted value."""
    left = [kept for kept in runs if value(kept.record.settings) in wanted]
    if not left:
        there = ", ".join(str(one) for one in sorted(_there(runs, value))) or "none"
        asked = ", ".join(str(one) for one in wanted)
        raise SettingsError(f"no kept run that fits has {name} {asked}: there is {there}.")
    return left


def _text(name: str, run: RunSettings) -> str | None:
    """A setting's value as it is shown and typed; None of a run that does not have it."""
    settings = all_settings(run)
    return shown(name, settings[name]) if name in settings else None


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


def latest(runs: Sequence[Kept]) -> tuple[list[Kept], list[str]]:
    """Of runs with the same settings the one kept last, and of runs on other features none.

    Features are those of the run kept last on a set; a note says how many runs are left out. They
    come in an order that does not depend on when they were kept.
    """
    one: dict[RunSettings, Kept] = {}
    for kept in runs:
        one.pop(kept.record.settings, None)  # the newer one takes its place at the end
        one[kept.record.settings] = kept
    newest = {place: digest for kept in one.values() for place, digest in _features(kept)}
    left = [
        k for k in one.values() if all(newest[place] == digest for place, digest in _features(k))
    ]
    lost = len(runs) - len(left)
    note = f"{lost:,} older runs are left out: their features or methods were made anew since"
    return sorted(left, key=_place), [note] * bool(lost)


def _place(kept: Kept) -> tuple[Any, ...]:
    """Where a run comes: methods and sets as they are listed, numbers by size."""
    run = kept.record.settings
    sets = [_set_place(name) for name in (run.id_set, run.ood_set or "")]
    values = [
        (isinstance(value, str), value if isinstance(value, int | float) else -1, str(value))
        for value in all_settings(run).values()
    ]
    return (method_place(run.method), *sets, *values)


def _set_place(name: str) -> tuple[int, str]:
    return list(CATALOGUE).index(name) if name in CATALOGUE else len(CATALOGUE), name


def _features(kept: Kept) -> list[tuple[tuple[str, str], str]]:
    """Digests of the image features that a run saw, by encoder and set."""
    encoder, digests = kept.record.settings.encoder, kept.record.digests
    return [((encoder, n), d) for n, d in digests.items() if not n.startswith("text/")]
