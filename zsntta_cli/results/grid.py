"""Grids: every combination of the values that are given for each setting, in a fixed order."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path, folder_name, set_names
from zsntta_cli.cache.lacking import no_partner
from zsntta_cli.cache.split import ood_of
from zsntta_cli.datasets.names import SetName
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS, check_method
from zsntta_cli.results.every import EVERY, EveryMethod, every_method
from zsntta_cli.settings import EncoderChoice, is_tiny
from zsntta_cli.settings.options import check_choice, option_name
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.runs import RunSettings, build_run, declared, not_of, setting_names

ALL = "all"  # every cached set as OOD

Axes = Mapping[str, Sequence[Any]]  # by setting: the values to run


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
            return self._with_every(self._every(root)).runs(root)
        self._check_settings()
        runs = self._runs_of(root, self.methods)
        for run in runs:
            self._check_partner(root, run)
        return list(dict.fromkeys(runs))

    def notes(self, root: Path) -> list[str]:
        """What is to be said of its methods: which `all` leaves out, as a line."""
        return [f"note: {self._every(root).line}"] if EVERY in self.methods else []

    def _every(self, root: Path) -> EveryMethod:
        return every_method(
            root,
            lambda method: self._runs_of(root, [method]),
            lambda method: [name for name, _ in self._axes_of(method)],
        )

    def _with_every(self, every: EveryMethod) -> "Grid":
        """The same grid with the names of methods in the place of `all`."""
        named = [m for one in self.methods for m in (every.methods if one == EVERY else [one])]
        words = {method: {"words": [name]} for method, name in every.words.items()}
        own = {**self.own, **{m: {**axes, **self.own.get(m, {})} for m, axes in words.items()}}
        return replace(self, methods=tuple(dict.fromkeys(named)), own=own)

    def _runs_of(self, root: Path, methods: Sequence[str]) -> list[RunSettings]:
        """The runs of some methods."""
        folder = folder_name(self.encoder)
        return [
            build_run(method, folder, id_set, ood_set, prompt, preset, **values)
            for id_set, ood_set in self._pairs(root, folder)
            for method in methods
            for preset in self.presets or ["paper"]
            for prompt in self._prompts(feature_path(root, folder, id_set))
            for values in self._values(method)
        ]

    def _values(self, method: str) -> Iterator[dict[str, Any]]:
        """All combinations of values for a method."""
        axes = dict(self._axes_of(method))
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values, strict=True))

    def _axes_of(self, method: str) -> list[tuple[str, Sequence[Any]]]:
        """The values of each setting that a method has and that was given; its own come first."""
        given = {**{n: v for n, v in self.axes.items() if v}, **self.own.get(method, {})}
        return [(name, values) for name, values in given.items() if name in declared(method)]

    def _check_settings(self) -> None:
        """Refuse a setting that none of its methods has.

        Raises:
            SettingsError: such a setting, or an unknown method.
        """
        for method in (*self.methods, *self.own):
            check_method(method)
        for method in self.own:
            if method not in self.methods:
                raise SettingsError(f"a setting is given for {method}, which is not to be run.")
        for names, chosen in ((self.axes, self.methods), *((a, [m]) for m, a in self.own.items())):
            for name in (name for name, given in names.items() if given):
                if not any(name in declared(method) for method in chosen):
                    check_choice("setting", name, setting_names())
                    having = [method for method in METHODS if name in declared(method)]
                    option = option_name(declared(having[0])[name])
                    raise SettingsError(not_of(option, chosen, having))

    def _prompts(self, path: Path) -> list[str]:
        """The prompts for an ID set's classes."""
        if not self.prompts:
            return [datasets.default_prompt(path.stem)]
        return [*map(cached_prompt, self.prompts)]

    def _pairs(self, root: Path, folder: str) -> list[tuple[str, str | None]]:
        return [
            (id_set, ood_set)
            for id_set in self.id_sets or [default_id_set(self.encoder)]
            for ood_set in self._ood_sets(root, folder, id_set)
        ]

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

    def _check_partner(self, root: Path, run: RunSettings) -> None:
        id_file = feature_path(root, run.encoder, run.id_set)
        if run.stream.ratio and run.ood_set is None and id_file.exists():
            partners = () if self.encoder.folder else datasets.partners(run.id_set)
            raise no_partner(run.id_set, run.encoder, root, partners)


def default_id_set(encoder: EncoderChoice) -> str:
    """The ID set that is used if none is named."""
    return "shapes" if is_tiny(encoder.slug) else "cifar10"
