"""TDA, "Efficient Test-Time Adaptation of Vision-Language Models", arXiv 2403.18293, Sec. 3.2.

Two caches of test samples correct the frozen model's logits: a positive one that says what a class
looks like, a negative one that says which classes an uncertain sample is not. Each keeps the few
samples of lowest entropy per predicted class. A sample first enters the caches, then is classified.

Alone (`run`), noise is what ZS-CLIP calls noise, and every sample is offered to the caches, also
those called noise, as the decisions of AdaND's released code show. Behind AdaND's detector or ours
(`run_behind_adand`, `run_behind_ridge`), the samples that it calls clean are. Injected noise never
is.

What enters and leaves a cache depends on the frozen model alone, not on adapted logits. So a block
of items is one product: its items against all keys that are in the cache at any time within the
block, with zero weight outside a key's own time. The result is that of going item by item.
"""

import bisect
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods import adand, ridge
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.compiled import compiled
from zsntta_cli.methods.scores import softmax, unit
from zsntta_cli.methods.settings import AdaNDTDASettings, RidgeTDASettings, TDASettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

_BLOCK = 512  # items a product at a time: bounds memory, changes no decision


class Cache:
    """Per class, the `shots` samples of lowest entropy so far: their features and labels.

    Sample k of class c has row `c * shots + k` of keys (C * shots, D), the image features, and of
    values (C * shots, C), the classes that it speaks for or against.
    """

    def __init__(self, classes: int, dim: int, shots: int, alpha: float, beta: float) -> None:
        self._shots, self._alpha, self._beta = shots, alpha, beta
        self._keys = np.zeros((classes * shots, dim), np.float32)
        self._values = np.zeros((classes * shots, classes), np.bool_)
        # (entropy, row) of each class's samples, lowest entropy first, on ties the older first
        self._ranked: list[list[tuple[float, int]]] = [[] for _ in range(classes)]

    def adapt(
        self,
        features: NDArray[np.float32],
        label: NDArray[np.int32],
        entropy: NDArray[np.float32],
        values: NDArray[np.bool_],
        offered: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        """Offer samples one by one; the logits alpha * exp(-beta (1 - A)) @ values (B, C) of each.

        A are the cosines of a sample's feature and the keys as they are once it was offered itself.
        Features (B, D) are of unit norm, values (B, C) are what a sample stores if it enters, and
        samples that are not `offered` (B,) do not enter.
        """
        entered = self._enter(label, entropy, np.flatnonzero(offered))
        new = [item for item, _ in entered]
        keys = np.concatenate([self._keys, features[new]])
        values = np.concatenate([self._values, values[new]])
        weights = self._alpha * np.exp(-self._beta * (1 - keys @ features.T))  # (keys, B)
        holder = np.arange(len(self._keys))  # the key that has each row at the moment
        for key, (item, row) in enumerate(entered, start=len(self._keys)):
            weights[key, :item] = 0
            weights[holder[row], item:] = 0
            holder[row] = key
        self._keys, self._values = keys[holder], values[holder]
        logits = np.zeros((values.shape[1], len(features)), np.float32)
        pair_key, pair_class = np.nonzero(values)
        _add_values(weights, pair_key, pair_class, logits)
        return logits.T

    def _enter(
        self, label: NDArray[np.int32], entropy: NDArray[np.float32], items: NDArray[np.intp]
    ) -> list[tuple[int, int]]:
        """Offer items in turn: those that entered, and the row that each took."""
        rows = map(self._place, label[items].tolist(), entropy[items].tolist())
        return [(i, row) for i, row in zip(items.tolist(), rows, strict=True) if row is not None]

    def _place(self, label: int, entropy: float) -> int | None:
        """The row that a sample takes: a free one, else the worst's if that has more entropy."""
        ranked = self._ranked[label]
        if len(ranked) < self._shots:
            row = label * self._shots + len(ranked)
        elif ranked and entropy < ranked[-1][0]:
            row = ranked.pop()[1]
        else:
            return None
        bisect.insort(ranked, (entropy, row), key=itemgetter(0))
        return row


@compiled
def _add_values(weights, pair_key, pair_class, logits):  # type: ignore[no-untyped-def]
    """Logits `values.T @ weights` (C, B), values given as pairs of a key and one of its classes."""
    for i in range(len(pair_key)):
        logits[pair_class[i]] += weights[pair_key[i]]


def adapted_classes(
    data: StreamData, options: TDASettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classes (T,) by the frozen model's logits, plus the positive, minus the negative cache's.

    `offered` (T,): the items that may enter the caches.
    """
    o = options
    classes, dim = data.pool.text_features.shape
    positive = Cache(classes, dim, o.positive_shots, o.positive_alpha, o.positive_beta)
    negative = Cache(classes, dim, o.negative_shots, o.negative_alpha, o.negative_beta)
    adapted = np.empty(len(data), np.int32)
    for block in _blocks(len(data)):
        features, logits = unit(data.features(block)), data.logits(block)
        probability, label = softmax(logits), data.class_index[block]
        entropy = _entropy(probability)
        one_hot = label[:, None] == np.arange(classes)
        logits += positive.adapt(features, label, entropy, one_hot, offered[block])
        against = (probability > o.mask_low) & (probability < o.mask_high)
        negatives = offered[block] & _is_uncertain(entropy, classes, o)
        logits -= negative.adapt(features, label, entropy, against, negatives)
        adapted[block] = logits.argmax(axis=1)
    return adapted


def run(data: StreamData, options: TDASettings, threshold: ThresholdSettings) -> Decisions:
    """Noise as ZS-CLIP decides it, classes by the adapted logits, every sample offered."""
    u = data.noise_score
    found = OnlineThreshold(threshold, options.batch_size)(u)
    class_index = adapted_classes(data, options, ~data.injected)
    return Decisions(class_index, u > found, 1 - u, found)


def run_behind_adand(
    data: StreamData, options: AdaNDTDASettings, threshold: ThresholdSettings
) -> Decisions:
    """Noise as AdaND decides it, classes by the adapted logits, samples called clean offered."""
    return _behind(adand.run(data, options, threshold), data, options)


def run_behind_ridge(
    data: StreamData, options: RidgeTDASettings, threshold: ThresholdSettings
) -> Decisions:
    """Noise as ridge decides it, likewise."""
    return _behind(ridge.run(data, options, threshold), data, options)


def _behind(decisions: Decisions, data: StreamData, options: TDASettings) -> Decisions:
    assert decisions.is_noise is not None
    offered = ~decisions.is_noise & ~data.injected
    return replace(decisions, class_index=adapted_classes(data, options, offered))


def _blocks(total: int) -> Iterator[slice]:
    return (slice(start, min(start + _BLOCK, total)) for start in range(0, total, _BLOCK))


def _entropy(probability: NDArray[np.float32]) -> NDArray[np.float32]:
    """Entropy (B,) in nats of probabilities (B, C)."""
    return -(probability * np.log(np.maximum(probability, 1e-30))).sum(axis=1)


def _is_uncertain(
    entropy: NDArray[np.float32], classes: int, options: TDASettings
) -> NDArray[np.bool_]:
    """Whether the normalised entropy is within the window; nats over log2(C), as published."""
    normalised = entropy / np.log2(max(classes, 2))
    return (options.entropy_low < normalised) & (normalised < options.entropy_high)
