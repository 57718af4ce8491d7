"""DDE, "Dual Distribution Estimation", ECCV 2026, arXiv 2606.25758: noise by words, and classes.

Noise. A word's activation by an image is its part of the softmax over names and words. Two caches
hold the last images that are surely ID and surely noise; the words with the largest difference of
mean activations, noise less ID, stand beside the names, and an image's noise score is their share.
A batch chooses words, gates itself by the shares, moves both means a little towards what it is
sure of, chooses again and is scored.

Classes. The frozen logits, plus the log densities of Gaussians that are learned from each item's
first choice, less those of Gaussians that are learned from second choices (gaussians.py).
All items of a batch are learned before they are classified, noise too, as released.

The caches keep activations and their sums, multiples of 2^-40 that add up exactly. The ID cache
starts with the class names. The other starts with the words that come first in a shuffled order, in
place of the paper's 15 noise images, which only an encoder can make; injected noise of the stream
enters it whatever its score, and is learned as no class.
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks
from zsntta_cli.methods.scores import cosine_logits
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.methods.words.gaussians import ClassGaussians
from zsntta_cli.methods.words.settings import DdeSettings
from zsntta_cli.methods.words.tanl import ActivationRing, largest
from zsntta_cli.methods.words.vocabulary import mined_words, names_and_words
from zsntta_cli.settings import ThresholdSettings

_UNIT = np.float32(2.0**40)  # activations are multiples of 2^-40: their sums are exact
_FIRST_NOISE = 15  # words that stand for the paper's noise images
_SURELY_NOISE = 0.10  # a share of the names below it, as released
_MOMENTUM = 0.95  # of the mean activations, beside what a batch is sure of
_RATE, _MOST_WEIGHT = 0.005, 0.2  # of the Gaussians, beside the frozen logits
Array = NDArray[np.float32]
Floats = NDArray[np.float64]


def run(data: StreamData, options: DdeSettings, threshold: ThresholdSettings) -> Decisions:
    """Noise where the words' share is at its online threshold or above; above a fixed one."""
    words, classes = _Words(data, options), _Classes(data, options)
    class_index, u = np.empty(len(data), np.int32), np.empty(len(data))
    for part in blocks(len(data), options.batch_size):
        raw, injected = data.features(part), data.injected[part]
        u[part] = words.score_and_learn(raw, injected)
        class_index[part] = classes.learn_and_classify(Frozen.of(data, part), ~injected)
    thresholds = _thresholds(u, options, threshold)
    is_noise = u > thresholds if threshold.fixed is not None else u >= thresholds
    return Decisions(class_index, is_noise, 1 - u, detector_threshold=thresholds)


# Noise.


class _Words:
    """Names and words, and which of these noise activates."""

    def __init__(self, data: StreamData, options: DdeSettings) -> None:
        names, words = names_and_words(data.pool)[0], mined_words(data.pool, options)
        self._text = np.concatenate([names, words])
        self._classes, self._scale = len(names), data.pool.logit_scale
        self._copies = 2 if options.dde_doubled else 1
        self._count = min(options.dde_words, self._copies * len(words))
        self._gate = (1 + options.dde_gate) / 2
        first = np.random.default_rng(0).permutation(len(words))[:_FIRST_NOISE]  # for all seeds
        self._id, self._noise = (ActivationRing(options.dde_cache, len(words)) for _ in "+-")
        for ring, texts in ((self._id, names), (self._noise, words[first])):
            for part in blocks(len(texts)):
                shares = self._shares(cosine_logits(texts[part], self._text, self._scale))
                _push(ring, shares)

    def score_and_learn(self, raw: Array, injected: NDArray[np.bool_]) -> Floats:
        """Noise scores (B,) of a batch; what is sure of it joins the caches."""
        logits = cosine_logits(raw, self._text, self._scale)
        activation = self._shares(logits)
        id_mean, noise_mean = self._id.mean, self._noise.mean
        share = 1 - self._words_share(logits, noise_mean - id_mean)
        is_id = (share > self._gate) & ~injected
        is_noise = (share < _SURELY_NOISE) | injected
        id_mean = _moved(id_mean, activation[is_id])
        noise_mean = _moved(noise_mean, activation[is_noise])
        u = self._words_share(logits, noise_mean - id_mean)
        _push(self._id, activation[is_id])
        _push(self._noise, activation[is_noise])
        return u

    def _words_share(self, logits: Array, difference: Floats) -> Floats:
        """The part (B,) of the most activated words in the softmax mass beside the names."""
        order = largest(difference, -(-self._count // self._copies))
        negatives = logits[:, self._classes + order].astype(np.float64)
        negatives += np.log(self._copies)
        if self._count % self._copies:  # of the last word one copy alone is among them
            negatives[:, -1] -= np.log(self._copies)
        odds = _log_mass(negatives) - _log_mass(logits[:, : self._classes].astype(np.float64))
        return np.asarray(1 / (1 + np.exp(-np.clip(odds, -700, 700))))

    def _shares(self, logits: Array) -> Array:
        """The part of each word in the softmax over names and words, as it is summed up."""
        powers = logits - logits.max(axis=1, keepdims=True)
        np.exp(powers, out=powers)
        names, shares = powers[:, : self._classes], powers[:, self._classes :]
        shares *= (_UNIT / (names.sum(axis=1) + self._copies * shares.sum(axis=1)))[:, None]
        np.rint(shares, out=shares)
        shares /= _UNIT
        return shares


def _push(ring: ActivationRing, activations: Array) -> None:
    for activation in activations:
        ring.push(activation)


def _log_mass(logits: Floats) -> Floats:
    """The log (B,) of the summed exponentials."""
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))


def _moved(mean: Floats, activations: Array) -> Floats:
    """A mean activation (M,), moved a little to that of some items."""
    if not len(activations):
        return mean
    return _MOMENTUM * mean + (1 - _MOMENTUM) * activations.mean(axis=0, dtype=np.float64)


def _thresholds(u: Floats, options: DdeSettings, threshold: ThresholdSettings) -> Floats:
    """Thresholds (T,) on noise scores (T,), one a batch, of the last N_q scores up to its end."""
    if options.dde_cells == "grid" or threshold.fixed is not None:
        return OnlineThreshold(threshold, options.batch_size)(u)
    thresholds, latest = np.empty(len(u)), 0.5  # until there are two scores
    for part in blocks(len(u), options.batch_size):
        latest = best_split(u[max(0, part.stop - threshold.queue) : part.stop], latest)
        thresholds[part] = latest
    return thresholds


def best_split(scores: Floats, latest: float) -> float:
    """The score at which a group begins so that the variance within both groups is least.

    `latest` where all scores are equal, or there is one.
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


# Classes.


class _Classes:
    """Gaussians of first choices, and of second ones."""

    def __init__(self, data: StreamData, options: DdeSettings) -> None:
        texts = data.pool.text_features.astype(np.float64)
        self._first = ClassGaussians(texts)
        has_second = options.dde_exclusion > 0 and len(texts) > 1
        self._second = ClassGaussians(texts) if has_second else None
        self._exclusion = options.dde_exclusion

    def learn_and_classify(self, frozen: Frozen, learned: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Classes (B,) of a batch, of which the `learned` items (B,) are learned before."""
        features, probability = frozen.features[learned], frozen.probability[learned]
        self._learn(self._first, features, probability, 1)
        weight = min(_RATE * self._first.mean_count, _MOST_WEIGHT)
        logits = frozen.logits + weight * self._first.log_densities(frozen.features)
        if self._second:
            self._learn(self._second, features, probability, 2)
            excluded = self._second.log_densities(frozen.features)
            logits -= weight * self._exclusion * excluded
        return np.asarray(logits.argmax(axis=1))

    def _learn(
        self, gaussians: ClassGaussians, features: Floats, probability: Floats, choice: int
    ) -> None:
        """Learn each item as its `choice`-th class, by its probability."""
        items, left = np.arange(len(probability)), probability.copy()
        for _ in range(choice - 1):
            left[items, left.argmax(axis=1)] = -1
        classes = left.argmax(axis=1)
        gaussians.learn(features, classes, probability[items, classes])
