"""Grids: every combination of the values that are given for each setting, in a fixed order.

`all` in the place of methods is every one that needs nothing but what is cached. Also what some
runs come to before any is run: which are kept, and which lack features.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path, folder_name, set_names
from zsntta_cli.cache.lacking import no_partner
from zsntta_cli.cache.split import ood_of
from zsntta_cli.datasets.names import WORDS as WORD_LISTS
from zsntta_cli.datasets.names import SetName, noise_name
from zsntta_cli.errors import SettingsError, ZsnttaError, first_of
from zsntta_cli.methods import METHODS, NO_TEXT, WORDS, check_method
from zsntta_cli.results.store import Keeping, kept_before
from zsntta_cli.settings import NO_NOISE, EncoderChoice, is_tiny
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.runs import RunSettings, build_run, declared, no_setting
from zsntta_cli.simulation.sources import Foreseen, Library

ALL = "all"  # every cached set as OOD
EVERY = "all"  # in the place of methods
_OF_THE_PAPER = "adand+tda"  # other pairs are named
_SHOWN = 3  # methods in a group

Axes = Mapping[str, Sequence[Any]]  # by setting: the values to run
NeededFile = tuple[str, str]  # the folder of an encoder, the name of a set or of a noise pool


@dataclass(frozen=True)
class Grid:
    """What to run; an empty sequence means the default."""

    methods: Sequence[str]  # EVERY among them: all that need nothing but what is cached
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
        if EVERY in self.methods:
            left_out = self._left_out(root)
            every = [m for m in (*METHODS, _OF_THE_PAPER) if m not in left_out]
            named = [m for one in self.methods for m in (every if one == EVERY else [one])]
            return replace(self, methods=tuple(dict.fromkeys(named))).runs(root)
        self._check_settings()
        runs = self._runs_of(root, self.methods)
        for run in runs:
            lacks_ood = run.stream.ratio and run.ood_set is None
            if lacks_ood and feature_path(root, run.encoder, run.id_set).exists():
                partners = () if self.encoder.folder else datasets.partners(run.id_set)
                raise no_partner(run.id_set, run.encoder, root, partners)
        return list(dict.fromkeys(runs))

    def notes(self, root: Path) -> list[str]:
        """What is to be said of its methods: which `all` leaves out, as a line."""
        if EVERY not in self.methods:
            return []
        left_out, groups = self._left_out(root), dict[str, list[str]]()
        for method, reason in left_out.items():
            groups.setdefault(reason, []).append(method)
        said = [f"{first_of(names, _SHOWN)} ({reason})" for reason, names in groups.items()]
        count = len(METHODS) + 1 - len(left_out)
        return [f"note: all is {count} methods; left out: {'; '.join(said)}"]

    def _left_out(self, root: Path) -> dict[str, str]:
        """Why `all` leaves methods out, by method.

        What a setting that is given names is there, or the run itself says that it is missing.
        """
        library, reasons = Library(root), dict[str, str]()
        for name in (*METHODS, _OF_THE_PAPER):
            given = self._axes_of(name)
            if METHODS[name].live:
                reasons[name] = "live, they encode images"
            elif METHODS[name].needs == NO_TEXT and "no_text" not in given:
                reasons[name] = "--set no-text=FILE.npy"
            else:
                runs = self._runs_of(root, [name])
                # Streams of one ID set that differ in seed or ratio need the same files.
                for run in {(r.id_set, r.prompt, r.stream.noise): r for r in runs}.values():
                    if lacking := _lacking(root, library, run, given):
                        reasons[name] = lacking
                        break
        return reasons

    def _runs_of(self, root: Path, methods: Sequence[str]) -> list[RunSettings]:
        """The runs of some methods."""
        folder = folder_name(self.encoder)
        usual_set = "shapes" if is_tiny(folder) else "cifar10"
        pairs = {  # by method: for each of its settings, this name with each value
            method: [
                [(name, value) for value in values]
                for name, values in self._axes_of(method).items()
            ]
            for method in methods
        }
        return [
            build_run(method, folder, id_set, ood_set, prompt, preset, **dict(values))
            for id_set in self.id_sets or [usual_set]
            for ood_set in self._ood_sets(root, folder, id_set)
            for method in methods
            for preset in self.presets or ["paper"]
            for prompt in map(cached_prompt, self.prompts or [datasets.default_prompt(id_set)])
            for values in itertools.product(*pairs[method])
        ]

    def _axes_of(self, method: str) -> dict[str, Sequence[Any]]:
        """The values of each setting that a method has and that was given, or given for it."""
        given = {**{n: v for n, v in self.axes.items() if v}, **self.own.get(method, {})}
        return {name: values for name, values in given.items() if name in declared(method)}

    def _check_settings(self) -> None:
        """Refuse a setting that none of its methods has.

        Raises:
            SettingsError: such a setting, or an unknown method.
        """
        for method in (*self.methods, *self.own):
            check_method(method)
        asked = [(name, self.methods) for name, values in self.axes.items() if values]
        for method, axes in self.own.items():
            if method not in self.methods:
                raise SettingsError(f"a setting is given for {method}, which is not to be run.")
            asked += [(name, [method]) for name, values in axes.items() if values]
        for name, methods in asked:
            if name not in set().union(*map(declared, methods)):
                raise SettingsError(f"{no_setting(name.replace('_', '-'), methods)}.")

    def _ood_sets(self, root: Path, folder: str, id_set: str) -> Sequence[str | None]:
        if ALL in self.ood_sets:
            # An ID set's own images, corrupted otherwise, are no noise.
            base = SetName.parse(id_set).base
            names = set_names(root, folder)
            return [name for name in names if SetName.parse(name).base != base] or [None]
        if self.ood_sets:
            ood_sets = [name for name in self.ood_sets if name != id_set]
            if not ood_sets:
                raise SettingsError(f"'{id_set}' cannot be its own OOD set: add --ood NAME")
            return ood_sets
        partners = datasets.partners(id_set) or ((half,) if (half := ood_of(id_set)) else ())
        cached = [n for n in partners if feature_path(root, folder, n).exists()]
        return cached or [None]


def _lacking(root: Path, library: Library, run: RunSettings, given: Iterable[str]) -> str:
    """What a run needs beside the images of its sets and is not cached, in words."""
    pool = feature_path(root, run.encoder, noise_name(run.stream.noise))
    if run.stream.noise != NO_NOISE and "noise" not in given and not pool.exists():
        return "no injected noise cached"
    if METHODS[run.method].needs == WORDS and "words" not in given:
        try:
            library.more_text(run)
        except ZsnttaError:
            several = not run.flat()["words"] and set_names(root, run.encoder, WORD_LISTS)
            return "--set words=NAME" if several else "no words cached"
    return ""


# What some runs come to before any is run.


def needed_files(runs: Iterable[RunSettings]) -> list[NeededFile]:
    """The feature files of the images of some runs, each once: ID, OOD set, injected noise."""
    files: dict[NeededFile, None] = {}
    for run in runs:
        pool = noise_name(run.stream.noise) if run.stream.noise != NO_NOISE else None
        for name in filter(None, (run.id_set, run.ood_set, pool)):
            files[run.encoder, name] = None
    return list(files)


def missing_files(root: Path, runs: Iterable[RunSettings]) -> dict[str, list[str]]:
    """The sets and noise pools without a feature file, in order, by the folder of their encoder."""
    missing: dict[str, list[str]] = {}
    for folder, name in needed_files(runs):
        if not feature_path(root, folder, name).exists():
            missing.setdefault(folder, []).append(name)
    return missing


@dataclass(frozen=True)
class Foresight:
    """Counts of some runs, and what those that cannot be run lack."""

    kept: int
    to_run: int
    lacking: int
    missing: Mapping[str, Sequence[str]]  # sets without features, by the folder of their encoder
    reasons: Sequence[ZsnttaError]  # why runs that have all their files cannot be, each once


def foresee(root: Path, runs: Sequence[RunSettings], keeping: Keeping) -> Foresight:
    """What some different runs come to; nothing is run or written.

    Raises:
        StoreError: the store cannot be read.
    """
    kept = kept_before(root, runs, keeping)
    others = [run for run in runs if run not in kept]
    reasons: dict[str, ZsnttaError] = {}
    foreseen, to_run = Foreseen(root), 0
    for run in others:
        if missing_files(root, [run]):
            continue
        if isinstance(result := foreseen.look(run), ZsnttaError):
            reasons[str(result)] = result
        else:
            to_run += 1
    missing = missing_files(root, others)
    return Foresight(len(kept), to_run, len(others) - to_run, missing, list(reasons.values()))
