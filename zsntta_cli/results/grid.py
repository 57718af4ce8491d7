"""Grids: every combination of the values that are given for each setting, in a fixed order.

`all` in the place of methods is every one that needs nothing but what is cached.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path, folder_name, set_names
from zsntta_cli.cache.lacking import no_partner
from zsntta_cli.cache.split import ood_of
from zsntta_cli.datasets.names import SetName, noise_name, words_name
from zsntta_cli.errors import SettingsError, first_of
from zsntta_cli.methods import METHODS, NO_TEXT, WORDS, check_method
from zsntta_cli.settings import NO_NOISE, EncoderChoice, is_tiny
from zsntta_cli.settings.options import check_choice, option_name
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.runs import RunSettings, build_run, declared, not_of, setting_names
from zsntta_cli.simulation.sources import Library

ALL = "all"  # every cached set as OOD
EVERY = "all"  # in the place of methods
_USUAL_WORDS = "wordnet"
_OF_THE_PAPER = "adand+tda"  # other pairs are named
_SHOWN = 3  # methods in a group
_LIVE = "live, they encode images"
_NO_TEXT = "--set no-text=FILE.npy"
_NO_WORDS = "no words cached"
_NO_POOL = "no injected noise cached"

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

    def _every(self, root: Path) -> "_EveryMethod":
        """The methods that can be run on what is cached under `root`.

        What a setting that is given names is there, or the run itself says that it is missing.
        """
        library, methods = Library(root), list[str]()
        words, left_out = dict[str, str](), dict[str, list[str]]()
        for name in (*METHODS, _OF_THE_PAPER):
            given = dict(self._axes_of(name))
            reason = _LIVE if METHODS[name].live else ""
            if METHODS[name].needs == NO_TEXT and "no_text" not in given:
                reason = reason or _NO_TEXT
            # Streams of one ID set that differ in seed or ratio need the same files.
            runs = [] if reason else self._runs_of(root, [name])
            for run in {(run.id_set, run.prompt, run.stream.noise): run for run in runs}.values():
                pool = feature_path(root, run.encoder, noise_name(run.stream.noise))
                if run.stream.noise != NO_NOISE and "noise" not in given and not pool.exists():
                    reason = _NO_POOL
                elif METHODS[name].needs == WORDS and "words" not in given:
                    usual = _usual_words(library, run)
                    words |= {name: usual} if usual else {}
                    reason = reason or _NO_WORDS * _lacks_words(root, library, run, usual)
            if reason:
                left_out.setdefault(reason, []).append(name)
            else:
                methods.append(name)
        return _EveryMethod(methods, {m: words[m] for m in methods if m in words}, left_out)

    def _with_every(self, every: "_EveryMethod") -> "Grid":
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


# `all` in the place of methods.


class _EveryMethod(NamedTuple):
    """The methods that `all` stands for, and those that it leaves out."""

    methods: Sequence[str]
    words: Mapping[str, str]  # by method: the list that it gets where several are cached
    left_out: Mapping[str, list[str]]  # by reason: methods

    @property
    def line(self) -> str:
        """What `all` is, in a line."""
        words = ", ".join(dict.fromkeys(self.words.values()))
        groups = [f"{first_of(names, _SHOWN)} ({why})" for why, names in self.left_out.items()]
        return (
            f"all is {len(self.methods)} methods"
            + f", by the words {words}" * bool(words)
            + f"; left out: {'; '.join(groups)}"
        )


def _usual_words(library: Library, run: RunSettings) -> str:
    """The word list that is meant where several are cached and the method names none."""
    cached = [] if run.flat()["words"] else library.cached_words(run.encoder)
    if len(cached) < 2:
        return ""
    return _USUAL_WORDS if _USUAL_WORDS in cached else cached[0]


def _lacks_words(root: Path, library: Library, run: RunSettings, usual: str) -> bool:
    """Whether the words of a run are not cached, or class names lack what stands beside them."""
    if not (run.flat()["words"] or library.cached_words(run.encoder)):
        return True
    run = run.with_options(words=usual) if usual else run
    prompts, beside = library.word_prompts(run)
    needed = [(words_name(name), prompt) for name, prompt in prompts.items()]
    needed += [(run.id_set, beside)] if beside else []
    paths = {name: feature_path(root, run.encoder, name) for name, _ in needed}
    return any(
        not paths[name].exists() or prompt not in store.read(paths[name], rows=False).texts
        for name, prompt in needed
    )
