"""TANL, "Activation Matters: Test-time Activated Negative Labels", arXiv 2603.25250.

An image's activation of a word is the word's part of the softmax over names and words. Two rings
keep the activations of the last images that are surely ID and surely noise. The words with the
largest difference of means, noise minus ID, are the next image's negatives, in that order. The
score averages NegLabel's over growing numbers of negatives, so the first are in all denominators.

This is the paper's α = 1: earlier images choose the words. (The released command has α = 0, which
mixes in the batch itself, so that single images choose the words that score them.) The ID ring
starts with the activations by the class names. The noise ring starts empty, with a mean of zero,
where the released code has noise images. Here these are injected into the stream and enter whatever
their score. Whether an image is sure depends on the online threshold of the score with a gap; the
project's queue takes the place of the code's ring of 20,000 scores.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, Pool, StreamData
from zsntta_cli.methods.method import FROM_ONE, FROM_ZERO, FROZEN, GAP, SHARE, WORDS, Method
from zsntta_cli.methods.scores import cosine_logits, energy
from zsntta_cli.methods.threshold import OnlineThreshold, is_surely_id, is_surely_noise
from zsntta_cli.methods.words.vocabulary import (
    WordSettings,
    item_blocks,
    mined_words,
    names_and_words,
)
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import Range, option


@dataclass(frozen=True)
class TanlSettings(WordSettings):
    """The settings of TANL.

    The images of the stream so far choose them: the paper's α = 1.
    """

    tanl_candidates: str = option(
        "all", "Words that may be activated: all, or those mined.", choices=("all", "mined")
    )
    tanl_words: int = option(
        1000, "B: number of the most activated words that count.", within=FROM_ONE
    )
    tanl_step: int = option(  # the released command goes through 2, 1 and 0
        2, "γ: additional words in each of the averaged scores; 0: one score.", within=FROM_ZERO
    )
    tanl_ring: int = option(
        300,
        "L: number of the last images of either kind in the memory.",
        within=Range(least=1, most=4096),
    )
    gap: float = option(0.5, GAP, within=SHARE)


_UNIT = np.float32(2.0**40)  # activations are multiples of 2^-40, so their sums are exact
Array = NDArray[np.float32]
Order = NDArray[np.intp]


class ActivationRing:
    """The last activations (M,) of one kind, and their mean, which is zero at first."""

    def __init__(self, size: int, words: int) -> None:
        self.rows = np.zeros((size, words), np.float32)
        self.sum = np.zeros(words)
        self.seen = 0

    def push(self, activation: Array) -> None:
        """Add an activation, and remove the oldest if the ring is full."""
        slot = self.seen % len(self.rows)
        self.sum -= self.rows[slot]  # zeros, while the ring is not full
        self.sum += activation
        self.rows[slot] = activation
        self.seen += 1

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean activation (M,)."""
        return self.sum / max(1, min(self.seen, len(self.rows)))


class ActivatedWords:
    """The words that are negatives now, by the contents of both rings."""

    def __init__(self, words: int, options: TanlSettings) -> None:
        self.noise, self.id = (ActivationRing(options.tanl_ring, words) for _ in "-+")
        self.order = np.arange(min(options.tanl_words, words))  # the most activated first

    def push(self, activations: Array, is_noise: bool) -> None:
        """Add the activations (B, M) by images that are surely noise, or surely ID."""
        ring = self.noise if is_noise else self.id
        for activation in activations:
            ring.push(activation)
        # The B words with the largest difference of means.
        self.order = largest(self.noise.mean - self.id.mean, len(self.order))


def largest(values: NDArray[np.float64], count: int) -> Order:
    """The places of the `count` largest values, descending; equal values keep their order."""
    negative = -values
    last = np.partition(negative, count - 1)[count - 1]
    above = np.flatnonzero(negative < last)
    equal = np.flatnonzero(negative == last)[: count - len(above)]
    return np.concatenate([above[np.argsort(negative[above], kind="stable")], equal])


def growing_share(id_mass: float, negatives: NDArray[np.floating], step: int) -> float:
    """The mean ID share beside the first γ, 2 γ, … and at last all B of the negatives' logits (B,).

    `id_mass` is the log of the names' mass. With a step of 0 or above B it is the share beside all.
    """
    top = max(id_mass, float(negatives.max()))
    masses = np.exp(negatives.astype(np.float64) - top).cumsum()
    step, names_mass = step or len(masses), np.exp(id_mass - top)
    counts = np.minimum(np.arange(step, len(masses) + step, step), len(masses))
    return float((names_mass / (names_mass + masses[counts - 1])).mean())


@dataclass(frozen=True, eq=False)
class Texts:
    """The class names, and the words that may be activated."""

    text: Array  # (C + M, D) unit norm
    classes: int  # C

    @classmethod
    def of(cls, pool: Pool, options: TanlSettings) -> "Texts":
        """The names and the words of a pool."""
        names, words = names_and_words(pool)
        words = words if options.tanl_candidates == "all" else mined_words(pool, options)
        return cls(np.concatenate([names, words]), len(names))


class TANL(Method):
    """TANL, arXiv 2603.25250: the words that noise activates more than ID images do."""

    Settings = TanlSettings
    needs = WORDS
    cites = ("zhang2026activation",)
    cost = "keeps the activations of all words by the last L images of each kind"
    revision = 2
    official = {"word_prompts": "speech", "mined_share": 0.15}
    is_probability = True
    class_probability = FROZEN

    def __init__(
        self, data: StreamData, options: TanlSettings, threshold: ThresholdSettings
    ) -> None:
        self.options, self.texts = options, Texts.of(data.pool, options)
        self.threshold = OnlineThreshold(threshold)
        self.activated = _started(self.texts, data.pool.logit_scale, options)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise iff 1 - S is above its online threshold; keep ZS-CLIP's class."""
        text, classes = self.texts.text, self.texts.classes
        score, own = np.empty(len(items)), np.empty(len(items))
        for block in item_blocks(len(items), len(text)):
            logits = cosine_logits(items.features(block), text, items.pool.logit_scale)
            id_mass, activation = _activations(logits, classes)
            for i, t in enumerate(range(block.start, block.stop)):
                negatives = logits[i, classes:][self.activated.order]
                score[t] = growing_share(float(id_mass[i]), negatives, self.options.tanl_step)
                u = np.array([1 - score[t]])
                own[t] = (now := self.threshold(u, learn))[0]
                if learn:
                    self._learn(activation[i : i + 1], u, now, bool(items.injected[t]))
        return Decisions(items.class_index, 1 - score > own, score, detector_threshold=own)

    def _learn(
        self, activation: Array, u: NDArray[np.float64], now: NDArray[np.float64], known: bool
    ) -> None:
        """Add an item's activation (1, M) if it is surely of one kind."""
        if known or is_surely_noise(u, now, self.options.gap)[0]:
            self.activated.push(activation, is_noise=True)
        elif is_surely_id(u, now, self.options.gap)[0]:
            self.activated.push(activation, is_noise=False)


def _activations(logits: Array, classes: int) -> tuple[Array, Array]:
    """The log of the names' mass (B,), and the words' part (B, M) of the softmax over all."""
    id_mass, words = energy(logits[:, :classes]), logits[:, classes:]
    share = np.exp(words - energy(logits)[:, None])
    return id_mass, np.rint(share * _UNIT) / _UNIT


def _started(texts: Texts, scale: float, options: TanlSettings) -> ActivatedWords:
    """The rings before the first image: ID are the class names, the last L in random order."""
    activated = ActivatedWords(len(texts.text) - texts.classes, options)
    shuffled = np.random.default_rng(0).permutation(texts.classes)  # one order for all seeds
    kept = texts.text[shuffled[-options.tanl_ring :]]
    for block in item_blocks(len(kept), len(texts.text)):
        logits = cosine_logits(kept[block], texts.text, scale)
        activated.push(_activations(logits, texts.classes)[1], is_noise=False)
    return activated
