"""DDE, "Dual Distribution Estimation", ECCV 2026, arXiv 2606.25758: noise by words, and classes.

Noise: an image's activation of a word is the word's part of the softmax over names and words. Two
caches keep the last images that are surely ID and surely noise. The words with the largest
difference of mean activations, noise minus ID, stand beside the names; their share of the softmax
is the noise score. A batch chooses words, the shares tell which of its items are sure, these move
both means a little, and the batch chooses words again and is scored.

Classes: the logits are the frozen model's, plus the log densities of Gaussians learned from each
item's most probable class, minus those of Gaussians learned from the second (gaussians.py). As in
the released code, all items of a batch, noise too, are learned before they are classified.

The caches keep activations and their sums, multiples of 2^-40 that add up exactly. The ID cache
starts with the class names. The noise cache starts with 15 random words in place of the paper's 15
noise images, which only an encoder can make. Injected noise enters it whatever its score, and is
learned for no class.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks
from zsntta_cli.methods.method import FROM_ONE, FROM_ZERO, SHARE, WORDS, Method
from zsntta_cli.methods.scores import cosine_logits
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.methods.words.gaussians import ClassGaussians
from zsntta_cli.methods.words.tanl import ActivationRing, largest
from zsntta_cli.methods.words.vocabulary import WordSettings, mined_words, names_and_words
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import Range, option


@dataclass(frozen=True)
class DdeSettings(WordSettings):
    """The settings of DDE.

    The settings are its paper's; `official` has its released code's. The paper chooses the number
    of words and the gate for each set. These are ImageNet's, but with 100 words for other sets.
    """

    batch_size: int = option(256, "Items that are decided on at once.", within=FROM_ONE)
    dde_words: int = option(
        100, "M̂: number of the most activated words that count.", within=FROM_ONE
    )
    dde_gate: float = option(0.5, "g: an item is surely ID only if the names' share of the "
    "softmax is above (1 + g) / 2.",
                             within=SHARE)  # fmt: skip
    dde_exclusion: float = option(
        0.5, "β: weight of the Gaussians of second choices.", within=FROM_ZERO
    )
    dde_doubled: bool = option(False, "Use each word twice, as the released code does.")
    dde_cells: str = option(
        "exact", "Possible thresholds: between any two scores, or at 0, 0.01 … 0.99.",
        choices=("exact", "grid"),
    )  # fmt: skip
    dde_cache: int = option(
        5_000,
        "Number of the last images of either kind in the cache.",
        within=Range(least=1, most=8192),
    )


_UNIT = np.float32(2.0**40)  # activations are multiples of 2^-40, so their sums are exact
_FIRST_NOISE = 15  # words in place of the paper's noise images
_SURELY_NOISE = 0.10  # share of the names below which an item is surely noise, as released
_MOMENTUM = 0.95  # weight of the mean activations beside those of a batch
_RATE, _MOST_WEIGHT = 0.005, 0.2  # growth and limit of the Gaussians' weight
Array = NDArray[np.float32]
Floats = NDArray[np.float64]


class DDE(Method):
    """DDE, arXiv 2606.25758: words that noise activates, and Gaussians of the classes."""

    Settings = DdeSettings
    needs = WORDS
    imagenet = {"dde_words": 500}
    cites = ("zhu2026dual",)
    cost = (
        "keeps the activations of all words by dde-cache images of each kind (400 MB for 10,000 "
        "words) and D²/2 numbers for each class with items, or D² if dde-exclusion is above 0; "
        "multiplies each item with M words too"
    )
    official = {
        "word_prompts": "speech",
        "mined_share": 0.15,
        "dde_exclusion": 0.0,
        "dde_doubled": True,
        "dde_cells": "grid",
    }
    is_probability = True

    def __init__(
        self, data: StreamData, options: DdeSettings, threshold: ThresholdSettings
    ) -> None:
        self.options, self.fixed = options, threshold.fixed is not None
        self.words, self.classes = _Words(data, options), _Classes(data, options)
        self.threshold = _Threshold(options, threshold)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise if the words' share reaches its online, or is above a fixed, one."""
        class_index, u = np.empty(len(items), np.int32), np.empty(len(items))
        own = np.empty(len(items))
        for part in blocks(len(items), self.options.batch_size):
            raw, injected = items.features(part), items.injected[part]
            u[part] = self.words.scores(raw, injected, learn)
            learned = ~injected & learn
            class_index[part] = self.classes.learn_and_classify(Frozen.of(items, part), learned)
            own[part] = self.threshold(u[part], learn)
        is_noise = u > own if self.fixed else u >= own
        return Decisions(class_index, is_noise, 1 - u, detector_threshold=own)


class _Threshold:
    """The thresholds on noise scores: each batch has one, from the last N_q scores."""

    def __init__(self, options: DdeSettings, threshold: ThresholdSettings) -> None:
        self.is_exact = options.dde_cells == "exact" and threshold.fixed is None
        self.grid = OnlineThreshold(threshold, options.batch_size)
        self.most, self.scores = threshold.queue, np.empty(0)  # of the queue
        self.latest = 0.5  # until there are two scores

    def __call__(self, u: Floats, learn: bool) -> Floats:
        """The thresholds (B,) of a batch of noise scores (B,), which enter the queue."""
        if not self.is_exact:
            return self.grid(u, learn)
        if learn:
            self.scores = np.concatenate([self.scores, u])[-self.most :]
            self.latest = best_split(self.scores, self.latest)
        return np.full(len(u), self.latest)


# The decision on noise.


@dataclass(frozen=True, eq=False)
class _Texts:
    """The class names, the mined words, and how they are used."""

    text: Array  # (C + M, D) unit norm
    classes: int  # C
    scale: float  # of the logits
    copies: int  # of each word
    count: int  # M̂, words that count
    gate: float  # share of the names above which an item is surely ID

    @classmethod
    def of(cls, data: StreamData, options: DdeSettings) -> "_Texts":
        """The texts of a pool."""
        names, words = names_and_words(data.pool)[0], mined_words(data.pool, options)
        copies = 2 if options.dde_doubled else 1
        return cls(
            np.concatenate([names, words]), len(names), data.pool.logit_scale, copies,
            min(options.dde_words, copies * len(words)), (1 + options.dde_gate) / 2,
        )  # fmt: skip


class _Words:
    """The names, the words, and the caches that tell which words noise activates."""

    def __init__(self, data: StreamData, options: DdeSettings) -> None:
        self.texts = texts = _Texts.of(data, options)
        names, words = texts.text[: texts.classes], texts.text[texts.classes :]
        first = np.random.default_rng(0).permutation(len(words))[:_FIRST_NOISE]  # for all seeds
        self.id, self.noise = (ActivationRing(options.dde_cache, len(words)) for _ in "+-")
        for ring, rows in ((self.id, names), (self.noise, words[first])):
            for part in blocks(len(rows)):
                _push(ring, self._shares(cosine_logits(rows[part], texts.text, texts.scale)))

    def scores(self, raw: Array, injected: NDArray[np.bool_], learn: bool) -> Floats:
        """The noise scores (B,) of a batch, whose sure items are added to the caches to learn."""
        logits = cosine_logits(raw, self.texts.text, self.texts.scale)
        id_mean, noise_mean = self.id.mean, self.noise.mean
        u = self._words_share(logits, noise_mean - id_mean)
        if not learn:
            return u
        activation, share = self._shares(logits), 1 - u
        is_id = (share > self.texts.gate) & ~injected
        is_noise = (share < _SURELY_NOISE) | injected
        id_mean = _moved(id_mean, activation[is_id])
        noise_mean = _moved(noise_mean, activation[is_noise])
        u = self._words_share(logits, noise_mean - id_mean)
        _push(self.id, activation[is_id])
        _push(self.noise, activation[is_noise])
        return u

    def _words_share(self, logits: Array, difference: Floats) -> Floats:
        """The share (B,) of the most activated words in the softmax over these and the names."""
        order = largest(difference, -(-self.texts.count // self.texts.copies))
        negatives = logits[:, self.texts.classes + order].astype(np.float64)
        negatives += np.log(self.texts.copies)
        if self.texts.count % self.texts.copies:  # only one copy of the last word counts
            negatives[:, -1] -= np.log(self.texts.copies)
        odds = _log_mass(negatives) - _log_mass(logits[:, : self.texts.classes].astype(np.float64))
        return np.asarray(1 / (1 + np.exp(-np.clip(odds, -700, 700))))

    def _shares(self, logits: Array) -> Array:
        """The part of each word in the softmax over names and words, rounded to 2^-40."""
        powers = logits - logits.max(axis=1, keepdims=True)
        np.exp(powers, out=powers)
        names, shares = powers[:, : self.texts.classes], powers[:, self.texts.classes :]
        shares *= (_UNIT / (names.sum(axis=1) + self.texts.copies * shares.sum(axis=1)))[:, None]
        np.rint(shares, out=shares)
        shares /= _UNIT
        return shares


def _push(ring: ActivationRing, activations: Array) -> None:
    for activation in activations:
        ring.push(activation)


def _log_mass(logits: Floats) -> Floats:
    """The log (B,) of the sum of exponentials."""
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))


def _moved(mean: Floats, activations: Array) -> Floats:
    """Move a mean activation (M,) a little towards that of some items."""
    if not len(activations):
        return mean
    return _MOMENTUM * mean + (1 - _MOMENTUM) * activations.mean(axis=0, dtype=np.float64)


def best_split(scores: Floats, latest: float) -> float:
    """The lowest score of the upper group, for the least variance within both groups.

    It is `latest` if all scores are equal, or if there is only one.
    """
    values = np.sort(scores)
    center = values.mean()
    first, square = np.cumsum(values - center), np.cumsum((values - center) ** 2)
    below = np.arange(1, len(values))
    above = len(values) - below
    within = (square[:-1] - first[:-1] ** 2 / below) + (
        square[-1] - square[:-1] - (first[-1] - first[:-1]) ** 2 / above
    )
    within[values[1:] == values[:-1]] = np.inf
    if not len(within) or not np.isfinite(within).any():
        return latest
    return float(values[1:][within.argmin()])


# The choice of the class.


class _Classes:
    """The Gaussians of most probable classes, and those of the second ones."""

    def __init__(self, data: StreamData, options: DdeSettings) -> None:
        texts = data.pool.text_features.astype(np.float64)
        self.first = ClassGaussians(texts)
        has_second = options.dde_exclusion > 0 and len(texts) > 1
        self.second = ClassGaussians(texts) if has_second else None
        self.exclusion = options.dde_exclusion

    def learn_and_classify(self, frozen: Frozen, learned: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Learn those items (B,) of a batch that are `learned`; return the classes (B,) of all."""
        features, probability = frozen.features[learned], frozen.probability[learned]
        self._learn(self.first, features, probability, 1)
        weight = min(_RATE * self.first.mean_count, _MOST_WEIGHT)
        logits = frozen.logits + weight * self.first.log_densities(frozen.features)
        if self.second:
            self._learn(self.second, features, probability, 2)
            excluded = self.second.log_densities(frozen.features)
            logits -= weight * self.exclusion * excluded
        return np.asarray(logits.argmax(axis=1))

    def _learn(
        self, gaussians: ClassGaussians, features: Floats, probability: Floats, choice: int
    ) -> None:
        """Learn each item for its `choice`-th most probable class, weighted by its probability."""
        items, remaining = np.arange(len(probability)), probability.copy()
        for _ in range(choice - 1):
            remaining[items, remaining.argmax(axis=1)] = -1
        classes = remaining.argmax(axis=1)
        gaussians.learn(features, classes, probability[items, classes])
