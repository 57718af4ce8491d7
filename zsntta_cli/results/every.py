"""`all` in the place of methods: every one that needs nothing but what is cached."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.datasets.names import noise_name, words_name
from zsntta_cli.errors import first_of
from zsntta_cli.methods import METHODS, NO_TEXT, WORDS
from zsntta_cli.settings import NO_NOISE
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library

EVERY = "all"
_USUAL_WORDS = "wordnet"
_OF_THE_PAPER = "adand+tda"  # other pairs are named
_SHOWN = 3  # methods in a group
_LIVE = "live, they encode images"
_NO_TEXT = "--set no-text=FILE.npy"
_NO_WORDS = "no words cached"
_NO_POOL = "no injected noise cached"


@dataclass(frozen=True)
class EveryMethod:
    """The methods that `all` stands for, and those that it leaves out."""

    methods: tuple[str, ...]
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


def every_method(
    root: Path,
    runs_of: Callable[[str], Iterable[RunSettings]],
    given_to: Callable[[str], Iterable[str]],
) -> EveryMethod:
    """The methods that can be run on what is cached under `root`.

    `runs_of` gives a method's runs, `given_to` the names of its settings that have a value: what
    these name is there, or the run itself says that it is missing.
    """
    library, methods = Library(root), list[str]()
    words, left_out = dict[str, str](), dict[str, list[str]]()
    for name in (*METHODS, _OF_THE_PAPER):
        given = {*given_to(name)}
        reason = _is_left_out(name, given)
        # Streams of one ID set that differ in seed or ratio need the same files.
        runs = {} if reason else {(r.id_set, r.prompt, r.stream.noise): r for r in runs_of(name)}
        for run in runs.values():
            if _lacks_pool(root, run, given):
                reason = _NO_POOL
            elif METHODS[name].needs == WORDS and "words" not in given:
                usual = _usual(library, run)
                words |= {name: usual} if usual else {}
                reason = reason or _NO_WORDS * _lacks_words(root, library, run, usual)
        if reason:
            left_out.setdefault(reason, []).append(name)
        else:
            methods.append(name)
    return EveryMethod(tuple(methods), {k: v for k, v in words.items() if k in methods}, left_out)


def _is_left_out(name: str, given: Iterable[str]) -> str:
    """Why a method is left out whatever is cached; nothing where that decides."""
    method = METHODS[name]
    if method.live:
        return _LIVE
    if method.needs == NO_TEXT and "no_text" not in given:
        return _NO_TEXT
    return ""


def _lacks_pool(root: Path, run: RunSettings, given: Iterable[str]) -> bool:
    noise = run.stream.noise
    if noise == NO_NOISE or "noise" in given:
        return False
    return not feature_path(root, run.encoder, noise_name(noise)).exists()


def _usual(library: Library, run: RunSettings) -> str:
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
