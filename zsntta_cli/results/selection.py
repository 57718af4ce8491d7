"""Choose kept runs by their settings."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from zsntta_cli.errors import SettingsError
from zsntta_cli.results.frame import all_settings, shown
from zsntta_cli.settings.ratios import Ratio, ratio_place

if TYPE_CHECKING:
    from zsntta_cli.results.kept import Kept
    from zsntta_cli.simulation.record import Record

ValueOf = Callable[["Record"], Any]

_USUAL_RATIO = 0.5  # the paper's


@dataclass(frozen=True)
class Filters:
    """Which kept runs are wanted; without any filter, all."""

    methods: Sequence[str] = ()
    id_sets: Sequence[str] = ()
    ood_sets: Sequence[str] = ()  # a clean stream is one for all OOD sets
    ratios: Sequence[Ratio] = ()
    seeds: Sequence[int] = ()
    encoders: Sequence[str] = ()
    settings: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by name, as shown

    @property
    def by_place(self) -> list[tuple[str, ValueOf, Collection[Any]]]:
        """The wanted values of a run's place, each with its name and how a record gives it."""
        wanted = (
            ("method", "method", self.methods),
            ("id", "id_set", self.id_sets),
            ("ood", "ood_set", self.ood_sets),
            ("ratio", "stream.ratio", self.ratios),
            ("seed", "stream.seed", self.seeds),
            ("encoder", "encoder", self.encoders),
        )
        return [
            (name, operator.attrgetter(f"settings.{path}"), values)
            for name, path, values in wanted
            if values
        ]

    def take(self, record: Record) -> bool:
        """Whether a run fits, to the letter: a clean stream has no OOD set."""
        return all(value(record) in wanted for _, value, wanted in self.by_place) and all(
            _text(name, record) in texts for name, texts in self.settings.items()
        )


def chosen(runs: Sequence[Kept], filters: Filters) -> list[Kept]:
    """The runs that the filters choose.

    Raises:
        SettingsError: no run fits; the message says which values there are.
    """
    if not runs:
        raise SettingsError("there are no kept runs to plot", remedy="simulate")
    fitting = list(runs)
    for name, value, wanted in filters.by_place:
        is_clean_too = name == "ood" and present(fitting, value) & {*wanted}
        allowed = {*wanted, None} if is_clean_too else {*wanted}
        fitting = _fitting(fitting, name, value, allowed)
    for name, texts in filters.settings.items():
        fitting = _fitting(fitting, name, functools.partial(_text, name), {*texts})
    return fitting


def present(runs: Collection[Kept], value: ValueOf) -> set[Any]:
    """The values that some runs have, without those of clean streams' OOD set."""
    return {value(kept.record) for kept in runs} - {None}


def _fitting(
    runs: Sequence[Kept], name: str, value: ValueOf, wanted: Collection[Any]
) -> list[Kept]:
    """The runs whose value is among the wanted ones."""
    fitting = [kept for kept in runs if value(kept.record) in wanted]
    if not fitting:
        values = sorted(present(runs, value), key=lambda v: (isinstance(v, str), v))
        there = ", ".join(map(str, values)) or "none"
        asked = ", ".join(map(str, wanted))
        raise SettingsError(f"no kept run that fits has {name} {asked}: there is {there}.")
    return fitting


def _text(name: str, record: Record) -> str | None:
    """A setting's value as it is shown and typed; None if the run does not have it."""
    settings = all_settings(record)
    return shown(name, settings[name]) if name in settings else None


def usual(runs: Sequence[Kept], filters: Filters, keep: Collection[str] = ()) -> list[Kept]:
    """Runs with one ratio, and with adaptive thresholds, unless the filters ask for others.

    `keep` names the settings of which a figure shows several values.
    """
    usual_runs = list(runs)
    if "ratio" not in keep and not filters.ratios:
        present = {kept.record.settings.stream.ratio for kept in usual_runs}
        ratios = sorted(present, key=ratio_place)
        noisy = [ratio for ratio in ratios if ratio] or ratios
        ratio = _USUAL_RATIO if _USUAL_RATIO in noisy else noisy[0]
        usual_runs = [k for k in usual_runs if k.record.settings.stream.ratio == ratio]
    if "fixed" not in keep and "fixed" not in filters.settings:
        usual_runs = [
            k for k in usual_runs if k.record.settings.threshold.fixed is None
        ] or usual_runs
    return usual_runs
