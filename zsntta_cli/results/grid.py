"""Grids: every combination of the values that are given for each setting, in a fixed order.

The method `all` means every method that needs only what is cached. This module also tells, before
anything is run, which runs are kept and which lack features.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path, folder_name, set_names
from zsntta_cli.cache.lacking import no_partner
from zsntta_cli.cache.split import ood_of
from zsntta_cli.datasets.names import SetName, noise_name
from zsntta_cli.errors import SettingsError, ZsnttaError, first_of
from zsntta_cli.methods import METHODS, check_method
from zsntta_cli.results.store import Keeping, kept_before
from zsntta_cli.settings import NO_NOISE, EncoderChoice, is_tiny
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, build_run, declared, no_setting
from zsntta_cli.simulation.sources import Library

ALL = "all"  # every cached set as OOD, every method that needs nothing but what is cached
_OF_THE_PAPER = "adand+tda"  # other pairs are named
_SHOWN = 3  # methods in a group

Axes = Mapping[str, Sequence[Any]]  # by setting: the values to run


@dataclass(frozen=True)
class Grid:
    """What to run; an empty sequence means the default."""

    methods: Sequence[str]  # or ALL among them
    encoder: EncoderChoice
    id_sets: Sequence[str] = ()
    ood_sets: Sequence[str] = ()
    prompts: Sequence[str] = ()
    presets: Sequence[str] = ()
    axes: Axes = field(default_factory=dict)  # of all methods that have the setting
    own: Mapping[str, Axes] = field(default_factory=dict)  # by method: values for it alone

    def runs(self, root: Path) -> list[RunSettings]:
        """All runs, each once: a setting that a method does not have makes no further run.

        Raises:
            SettingsError: a value out of range, a setting that no method has, or no OOD set for a
                ratio above 0.
        """
        left_out = self._left_out(root) if ALL in self.methods else {}
        methods: dict[str, None] = {}
        for name in self.methods:
            methods |= dict.fromkeys((*METHODS, _OF_THE_PAPER) if name == ALL else (name,))
        for name in left_out.keys() - {*self.methods}:
            del methods[name]
        for method in (*methods, *self.own):
            check_method(method)
            what = f"a setting is given for {method}, which is not one of the methods to run."
            check(method in methods, what)
        for of, axes in {"": self.axes, **self.own}.items():
            chosen = [of] if of else list(methods)
            settings = set().union(*map(declared, chosen))
            for name in axes:
                if axes[name] and name not in settings:
                    raise SettingsError(f"{no_setting(name.replace('_', '-'), chosen)}.")
        runs = list(dict.fromkeys(self._runs_of(root, list(methods))))
        for run in runs:
            lacks_ood = run.stream.ratio and run.ood_set is None
            if lacks_ood and feature_path(root, run.encoder, run.id_set).exists():
                partners = () if self.encoder.folder else datasets.partners(run.id_set)
                raise no_partner(run.id_set, run.encoder, root, partners)
        return runs

    def notes(self, root: Path) -> list[str]:
        """A note on its methods: which ones `all` leaves out."""
        if ALL not in self.methods:
            return []
        groups: dict[str, list[str]] = {}
        for method, reason in self._left_out(root).items():
            groups.setdefault(reason, []).append(method)
        left_out = [f"{first_of(names, _SHOWN)} ({reason})" for reason, names in groups.items()]
        count = len(METHODS) + 1 - sum(map(len, groups.values()))
        return [f"note: all means {count} methods; left out: {'; '.join(left_out)}"]

    def _left_out(self, root: Path) -> dict[str, str]:
        """Why `all` leaves methods out, by method: what they need and zs-clip does not."""
        foreseen, reasons = Library(root, rows=False), dict[str, str]()
        can_run = not isinstance(foreseen.look(self._runs_of(root, ["zs-clip"])[0]), ZsnttaError)
        for name in (*METHODS, _OF_THE_PAPER):
            if METHODS[name].live:
                reasons[name] = "live, they encode images"
            elif can_run:
                lack = foreseen.look(self._runs_of(root, [name])[0])
                if isinstance(lack, ZsnttaError):
                    reason = str(lack).partition(" (cached")[0].partition(":")[0]
                    reasons[name] = reason.removeprefix(f"{name} ")
        return reasons

    def _runs_of(self, root: Path, methods: Sequence[str]) -> list[RunSettings]:
        """The runs of some methods."""
        folder = folder_name(self.encoder)
        runs = []
        for id_set in self.id_sets or ["shapes" if is_tiny(folder) else "cifar10"]:
            prompts = [*map(cached_prompt, self.prompts or [datasets.default_prompt(id_set)])]
            for ood_set, method in itertools.product(self._ood_sets(root, folder, id_set), methods):
                wanted, settings = {**self.axes, **self.own.get(method, {})}, declared(method)
                axes = {name: v for name, v in wanted.items() if v and name in settings}
                for preset, prompt, *values in itertools.product(
                    self.presets or ["paper"], prompts, *axes.values()
                ):
                    of_run = dict(zip(axes, values, strict=True))
                    runs.append(
                        build_run(method, folder, id_set, ood_set, prompt, preset, **of_run)
                    )
        return runs

    def _ood_sets(self, root: Path, folder: str, id_set: str) -> Sequence[str | None]:
        if ALL in self.ood_sets:
            # An ID set's own images, corrupted otherwise, are no noise.
            base = SetName.parse(id_set).base
            names = set_names(root, folder)
            return [name for name in names if SetName.parse(name).base != base] or [None]
        if self.ood_sets:
            ood_sets = [name for name in self.ood_sets if name != id_set]
            check(bool(ood_sets), f"'{id_set}' cannot be its own OOD set: add --ood NAME")
            return ood_sets
        partners = datasets.partners(id_set) or ((half,) if (half := ood_of(id_set)) else ())
        cached = [n for n in partners if feature_path(root, folder, n).exists()]
        return cached or [None]


# What some runs come to before any is run.


def files_of(run: RunSettings) -> list[str]:
    """The names of the feature files of a run's images: ID set, OOD set, injected noise."""
    pool = noise_name(run.stream.noise) if run.stream.noise != NO_NOISE else None
    return [*filter(None, (run.id_set, run.ood_set, pool))]


@dataclass(frozen=True)
class Foresight:
    """What some runs come to."""

    kept: Mapping[RunSettings, Record]
    to_run: Sequence[RunSettings]
    lacking: Sequence[RunSettings]  # those of which a feature file is missing
    missing: Mapping[str, Sequence[str]]  # sets and noise pools without features, by folder


def foresee(root: Path, runs: Iterable[RunSettings], keeping: Keeping) -> Foresight:
    """Which of some runs are kept and which lack features; nothing is run or written.

    Raises:
        StoreError: the store cannot be read.
    """
    runs = list(dict.fromkeys(runs))
    kept, missing = kept_before(root, runs, keeping), dict[str, dict[str, None]]()
    to_run, lacking = list[RunSettings](), list[RunSettings]()
    for run in runs:
        if run not in kept:
            folder = run.encoder
            lacks = [n for n in files_of(run) if not feature_path(root, folder, n).exists()]
            (lacking if lacks else to_run).append(run)
            if lacks:
                missing.setdefault(folder, {}).update(dict.fromkeys(lacks))
    return Foresight(kept, to_run, lacking, {of: list(names) for of, names in missing.items()})
