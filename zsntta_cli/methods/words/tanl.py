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

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.scores import cosine_logits, energy
from zsntta_cli.methods.threshold import OnlineThreshold, is_surely_id, is_surely_noise
from zsntta_cli.methods.words.settings import TanlSettings
from zsntta_cli.methods.words.vocabulary import item_blocks, mined_words, names_and_words
from zsntta_cli.settings import ThresholdSettings

_UNIT = np.float32(2.0**40)  # activations are multiples of 2^-40, so their sums are exact
Array = NDArray[np.float32]
Order = NDArray[np.intp]


class ActivationRing:
    """The last activations (M,) of one kind, and their mean, which is zero at first."""

    def __init__(self, size: int, words: int) -> None:
        self._rows = np.zeros((size, words), np.float32)
        self._sum = np.zeros(words)
        self._seen = 0

    def push(self, activation: Array) -> None:
        """Add an activation, and remove the oldest if the ring is full."""
        slot = self._seen % len(self._rows)
        self._sum -= self._rows[slot]  # zeros, while the ring is not full
        self._sum += activation
        self._rows[slot] = activation
        self._seen += 1

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean activation (M,)."""
        return self._sum / max(1, min(self._seen, len(self._rows)))


class ActivatedWords:
    """The words that are negatives now, by the contents of both rings."""

    def __init__(self, words: int, options: TanlSettings) -> None:
        self._noise, self._id = (ActivationRing(options.tanl_ring, words) for _ in "-+")
        self._count = min(options.tanl_words, words)
        self._order: Order | None = None

    def push(self, activation: Array, is_noise: bool) -> None:
        """Add the activation by an image that is surely noise, or surely ID."""
        (self._noise if is_noise else self._id).push(activation)
        self._order = None

    @property
    def order(self) -> Order:
        """The B words with the largest difference of means, the largest first."""
        if self._order is None:
            self._order = largest(self._noise.mean - self._id.mean, self._count)
        return self._order


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


def run(data: StreamData, options: TanlSettings, threshold: ThresholdSettings) -> Decisions:
    """Call an item noise iff 1 - S is above its online threshold; keep ZS-CLIP's class."""
    pool, online = data.pool, OnlineThreshold(threshold)
    names, words = names_and_words(pool)
    words = words if options.tanl_candidates == "all" else mined_words(pool, options)
    text = np.concatenate([names, words])
    activated = _started(names, text, pool.logit_scale, options)
    score, thresholds = np.empty(len(data)), np.empty(len(data))
    for block in item_blocks(len(data), len(text)):
        logits = cosine_logits(data.features(block), text, pool.logit_scale)
        id_mass, activation = _activations(logits, len(names))
        for i, t in enumerate(range(block.start, block.stop)):
            negatives = logits[i, len(names) :][activated.order]
            score[t] = growing_share(float(id_mass[i]), negatives, options.tanl_step)
            u = np.array([1 - score[t]])
            thresholds[t] = (now := online(u))[0]
            if data.injected[t] or is_surely_noise(u, now, options.gap)[0]:
                activated.push(activation[i], is_noise=True)
            elif is_surely_id(u, now, options.gap)[0]:
                activated.push(activation[i], is_noise=False)
    return Decisions(data.class_index, 1 - score > thresholds, score, detector_threshold=thresholds)


def _activations(logits: Array, classes: int) -> tuple[Array, Array]:
    """The log of the names' mass (B,), and the words' part (B, M) of the softmax over all."""
    id_mass, words = energy(logits[:, :classes]), logits[:, classes:]
    share = np.exp(words - energy(logits)[:, None])
    return id_mass, np.rint(share * _UNIT) / _UNIT


def _started(names: Array, text: Array, scale: float, options: TanlSettings) -> ActivatedWords:
    """The rings before the first image: ID are the class names, the last L in random order."""
    activated = ActivatedWords(len(text) - len(names), options)
    shuffled = np.random.default_rng(0).permutation(len(names))  # one order for all seeds
    kept = names[shuffled[-options.tanl_ring :]]
    for block in item_blocks(len(kept), len(text)):
        for activation in _activations(cosine_logits(kept[block], text, scale), len(names))[1]:
            activated.push(activation, is_noise=False)
    return activated
