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

_UNIT = np.float32(2.0**40)  # activations are multiples of 2^-40, so their sums are exact
_FIRST_NOISE = 15  # words in place of the paper's noise images
_SURELY_NOISE = 0.10  # share of the names below which an item is surely noise, as released
_MOMENTUM = 0.95  # weight of the mean activations beside those of a batch
_RATE, _MOST_WEIGHT = 0.005, 0.2  # growth and limit of the Gaussians' weight
Array = NDArray[np.float32]
Floats = NDArray[np.float64]


def run(data: StreamData, options: DdeSettings, threshold: ThresholdSettings) -> Decisions:
    """Call an item noise if the words' share reaches its online, or is above a fixed, threshold."""
    words, classes = _Words(data, options), _Classes(data, options)
    class_index, u = np.empty(len(data), np.int32), np.empty(len(data))
    for part in blocks(len(data), options.batch_size):
        raw, injected = data.features(part), data.injected[part]
        u[part] = words.score_and_learn(raw, injected)
        class_index[part] = classes.learn_and_classify(Frozen.of(data, part), ~injected)
    thresholds = _thresholds(u, options, threshold)
    is_noise = u > thresholds if threshold.fixed is not None else u >= thresholds
    return Decisions(class_index, is_noise, 1 - u, detector_threshold=thresholds)


# The decision on noise.


class _Words:
    """The names, the words, and the caches that tell which words noise activates."""

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
        """Return the noise scores (B,) of a batch, and add its sure items to the caches."""
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
        """The share (B,) of the most activated words in the softmax over these and the names."""
        order = largest(difference, -(-self._count // self._copies))
        negatives = logits[:, self._classes + order].astype(np.float64)
        negatives += np.log(self._copies)
        if self._count % self._copies:  # only one copy of the last word counts
            negatives[:, -1] -= np.log(self._copies)
        odds = _log_mass(negatives) - _log_mass(logits[:, : self._classes].astype(np.float64))
        return np.asarray(1 / (1 + np.exp(-np.clip(odds, -700, 700))))

    def _shares(self, logits: Array) -> Array:
        """The part of each word in the softmax over names and words, rounded to 2^-40."""
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
    """The log (B,) of the sum of exponentials."""
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))


def _moved(mean: Floats, activations: Array) -> Floats:
    """Move a mean activation (M,) a little towards that of some items."""
    if not len(activations):
        return mean
    return _MOMENTUM * mean + (1 - _MOMENTUM) * activations.mean(axis=0, dtype=np.float64)


def _thresholds(u: Floats, options: DdeSettings, threshold: ThresholdSettings) -> Floats:
    """The thresholds (T,) on noise scores (T,): each batch has one, from the last N_q scores."""
    if options.dde_cells == "grid" or threshold.fixed is not None:
        return OnlineThreshold(threshold, options.batch_size)(u)
    thresholds, latest = np.empty(len(u)), 0.5  # until there are two scores
    for part in blocks(len(u), options.batch_size):
        latest = best_split(u[max(0, part.stop - threshold.queue) : part.stop], latest)
        thresholds[part] = latest
    return thresholds


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
        self._first = ClassGaussians(texts)
        has_second = options.dde_exclusion > 0 and len(texts) > 1
        self._second = ClassGaussians(texts) if has_second else None
        self._exclusion = options.dde_exclusion

    def learn_and_classify(self, frozen: Frozen, learned: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Learn those items (B,) of a batch that are `learned`; return the classes (B,) of all."""
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
        """Learn each item for its `choice`-th most probable class, weighted by its probability."""
        items, remaining = np.arange(len(probability)), probability.copy()
        for _ in range(choice - 1):
            remaining[items, remaining.argmax(axis=1)] = -1
        classes = remaining.argmax(axis=1)
        gaussians.learn(features, classes, probability[items, classes])
