"""The runs of the board: all contenders on the same streams, pair by pair."""

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS, WORDS
from zsntta_cli.report.board.contenders import Contender
from zsntta_cli.results.frame import shown
from zsntta_cli.settings import NO_NOISE, StreamSettings
from zsntta_cli.settings.ratios import NATURAL, Ratio
from zsntta_cli.simulation.runs import RunSettings, build_run
from zsntta_cli.simulation.sources import Library


class BoardStream(NamedTuple):
    """A noise ratio and an order of the samples."""

    ratio: Ratio
    order: str = StreamSettings.order

    @property
    def name(self) -> str:
        """How the stream differs from the usual one: its ratio, or its order."""
        if self.order != StreamSettings.order:
            return self.order
        return shown("ratio", self.ratio).replace("%", " %")


RATIOS = tuple(map(BoardStream, (0.0, 0.05, 0.25, 0.5, 0.75)))
MIDDLE = BoardStream(0.5)  # where scores are ranked and pairs are told
# As many OOD as ID samples in the field's orders; and all images of both sets once.
OTHERS = (
    *(BoardStream(0.5, order) for order in ("class", "dirichlet:0.1", "dirichlet:0.01")),
    BoardStream(NATURAL),
)
GAUSSIAN = "gaussian"
ALL_SETS = ""  # in Plan.words: for every ID set
# All see the same streams: a preset's are not taken.
_STREAM = {"placement": "periodic", "rounded_odds": False, "swapped_names": False}


class Pair(NamedTuple):
    """An ID set and its OOD set; None on a clean stream."""

    id_set: str
    ood_set: str | None

    def __str__(self) -> str:
        return f"{self.id_set} against {self.ood_set}" if self.ood_set else f"{self.id_set} alone"


class Spot(NamedTuple):
    """The place of a run on the board."""

    label: str
    noise: str  # what is injected
    pair: Pair
    stream: BoardStream
    seed: int


@dataclass(frozen=True)
class Plan:
    """The pairs, contenders and seeds of a board, and the features that are used."""

    root: Path
    encoder: str  # the folder name
    pairs: tuple[Pair, ...]
    chosen: tuple[Contender, ...]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    words: Mapping[str, str] | None = None  # by ID set, or for ALL_SETS: word lists, with commas

    @property
    def noises(self) -> tuple[str, ...]:
        """The types of injected noise: none, and Gaussian if its features are cached."""
        cached = feature_path(self.root, self.encoder, noise_name(GAUSSIAN)).exists()
        return (NO_NOISE, GAUSSIAN) if cached else (NO_NOISE,)

    @property
    def id_sets(self) -> tuple[str, ...]:
        """The ID sets, each once."""
        return tuple(dict.fromkeys(pair.id_set for pair in self.pairs))

    @functools.cached_property
    def left_out(self) -> dict[str, str]:
        """The contenders that are not run, by label, each with the reason."""
        reasons = {one.label: one.unfit or self._words_lack(one) for one in self.chosen}
        return {label: why for label, why in reasons.items() if why}

    @property
    def running(self) -> tuple[Contender, ...]:
        """The contenders that are run."""
        return tuple(one for one in self.chosen if one.label not in self.left_out)

    def runs(self) -> dict[Spot, RunSettings]:
        """All runs; those on one pair are together."""
        return {
            Spot(one.label, noise, pair, stream, seed): self._run(one, noise, pair, stream, seed)
            for pair, stream in self._streams()
            for one in self.running
            if one.decides or stream == MIDDLE
            for noise in self.noises
            for seed in self.seeds
        }

    def _streams(self) -> Iterator[tuple[Pair, BoardStream]]:
        """All streams; clean ones belong to an ID set and to no pair."""
        clean, *noisy = RATIOS
        for id_set in self.id_sets:
            yield Pair(id_set, None), clean
            pairs = [pair for pair in self.pairs if pair.id_set == id_set]
            yield from itertools.product(pairs, (*noisy, *OTHERS))

    def _run(
        self, one: Contender, noise: str, pair: Pair, stream: BoardStream, seed: int
    ) -> RunSettings:
        of_stream = {**_STREAM, **stream._asdict()}
        values = {**of_stream, "noise": noise, "seed": seed, **one.values}
        words = self.words or {}
        lists = words.get(pair.id_set, words.get(ALL_SETS))
        method = METHODS[one.method]
        if lists and method.needs == WORDS and not method.settings().words:  # has none of its own
            values["words"] = lists
        prompt = datasets.default_prompt(pair.id_set)
        return build_run(one.method, self.encoder, *pair, prompt, one.preset, **values)

    def words_of(self, one: Contender, id_set: str) -> tuple[str, int]:
        """The names of the word lists that a method gets for an ID set, and how many words.

        Raises:
            StoreError: the words, or the class names under their prompts, are not cached.
        """
        run = self._run(one, NO_NOISE, Pair(id_set, None), RATIOS[0], 0)
        lists = self._library.more_text(run)
        return run.options.words or "the only list", len(lists.more_text) if lists else 0

    @functools.cached_property
    def _library(self) -> Library:
        return Library(self.root)

    def _words_lack(self, one: Contender) -> str:
        """Why the words of a method are not available on all ID sets; empty if they are."""
        try:
            for id_set in self.id_sets if WORDS in one.inputs else ():
                self.words_of(one, id_set)
        except StoreError as error:
            return str(error).removesuffix(".").removeprefix(f"{one.method} ")
        return ""
