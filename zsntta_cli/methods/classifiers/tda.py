"""TDA, "Efficient Test-Time Adaptation of Vision-Language Models", arXiv 2403.18293, Sec. 3.2.

Two caches of test samples correct the frozen model's logits. The positive cache shows what a class
looks like; the negative one shows which classes an uncertain sample does not belong to. Each keeps
a few samples of lowest entropy per predicted class. A sample enters before it is classified.

Alone (`run`), TDA calls noise what ZS-CLIP calls noise, and offers every sample to the caches, even
those called noise, as the decisions of AdaND's released code show. Behind a detector, only samples
that are called clean are offered. Injected noise is never offered.

The frozen model alone determines what enters and leaves a cache. So a block of items takes one
product, with all keys that are in the cache at any time within the block; each key counts only for
the items of that time. The result is the same as item by item.
"""

import bisect
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.kernels.compiled import compiled
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.classifiers.blocks import blocks, entropy_of, leaving
from zsntta_cli.methods.scores import softmax, unit
from zsntta_cli.methods.settings import TDASettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

# Items and keys in one product: they limit memory and change no decision.
_BLOCK, _KEYS = 512, 4096


class Cache:
    """The `shots` samples of lowest entropy so far of each class: their features and labels.

    Sample k of class c is row `c * shots + k` of the keys (C * shots, D), the image features. The
    classes that it counts for or against are kept as sorted pairs (row, class). There are few, so
    memory and time grow with C and not with C².
    """

    def __init__(self, classes: int, dim: int, shots: int, alpha: float, beta: float) -> None:
        self._shots, self._alpha, self._beta = shots, alpha, beta
        self._keys = np.zeros((classes * shots, dim), np.float32)
        self._pairs = np.zeros((2, 0), np.int32)
        # (entropy, row) of each class's samples: the lowest entropy first, of equal ones the older
        self._ranked: list[list[tuple[float, int]]] = [[] for _ in range(classes)]

    def adapt(
        self,
        features: NDArray[np.float32],
        label: NDArray[np.int32],
        entropy: NDArray[np.float32],
        values: NDArray[np.bool_],
        offered: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        """Offer samples in turn; return the logits alpha * exp(-beta (1 - A)) @ values (B, C).

        A are the cosines of a sample's feature with the keys, after the sample itself was offered.
        `features` (B, D) have unit norm, and `values` (B, C) are what a sample stores if it enters.
        Samples that are not `offered` (B,) do not enter.
        """
        item, row = self._enter(label, entropy, np.flatnonzero(offered))
        old_until, new_until = leaving(row, item, len(self._keys), len(features))
        logits = np.zeros((values.shape[1], len(features)), np.float32)
        self._add(self._keys, self._pairs, np.zeros_like(old_until), old_until, features, logits)
        if len(item):
            keys, pairs = features[item], _pairs(values[item])
            self._add(keys, pairs, item, new_until, features, logits)
            self._keep(row, keys, pairs, new_until == len(features))
        return logits.T

    def _enter(
        self, label: NDArray[np.int32], entropy: NDArray[np.float32], items: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Offer items in turn; return those that entered, and the row of each."""
        rows = map(self._place, label[items].tolist(), entropy[items].tolist())
        row = np.array([-1 if r is None else r for r in rows], np.intp)
        return items[row >= 0], row[row >= 0]

    def _place(self, label: int, entropy: float) -> int | None:
        """The row of a new sample: a free one, or that of a sample of higher entropy, or None."""
        ranked = self._ranked[label]
        if len(ranked) < self._shots:
            row = label * self._shots + len(ranked)
        elif ranked and entropy < ranked[-1][0]:
            row = ranked.pop()[1]
        else:
            return None
        bisect.insort(ranked, (entropy, row), key=itemgetter(0))
        return row

    def _add(
        self,
        keys: NDArray[np.float32],
        pairs: NDArray[np.int32],
        since: NDArray[np.intp],
        until: NDArray[np.intp],
        features: NDArray[np.float32],
        logits: NDArray[np.float32],
    ) -> None:
        """Add the weights of keys to the logits (C, B) of items `since` to `until`, in parts."""
        used, first = np.unique(pairs[0], return_index=True)  # other keys have no classes
        bounds, classes = np.append(first, pairs.shape[1]), np.ascontiguousarray(pairs[1])
        for start in range(0, len(used), _KEYS):
            rows = used[start : start + _KEYS]
            weights = keys[rows] @ features.T
            weights -= 1  # in place: these four lines take a third of a replay's time
            weights *= self._beta
            np.exp(weights, out=weights)
            weights *= self._alpha
            bound = bounds[start : start + len(rows) + 1]
            _add_values(weights, bound, classes, since[rows], until[rows], logits)

    def _keep(
        self,
        row: NDArray[np.intp],
        keys: NDArray[np.float32],
        pairs: NDArray[np.int32],
        lasts: NDArray[np.bool_],
    ) -> None:
        """Store the keys that entered and were not replaced later (`lasts`) in their rows."""
        self._keys[row[lasts]] = keys[lasts]
        old = self._pairs[:, ~np.isin(self._pairs[0], row)]
        pairs = pairs[:, lasts[pairs[0]]]
        pairs[0] = row[pairs[0]]
        both = np.concatenate([old, pairs], axis=1)
        self._pairs = both[:, np.argsort(both[0], kind="stable")]


def _pairs(values: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The sorted pairs (2, P) of a row and a class at which values (B, C) are true."""
    return np.stack(np.nonzero(values)).astype(np.int32)


@compiled
def _add_values(weights, bound, classes, since, until, logits):  # type: ignore[no-untyped-def]
    """Add the weights (K, B) of each key, within its time, to the logits (C, B) of its classes.

    The classes of key k are `classes[bound[k]:bound[k + 1]]`.
    """
    for k in range(len(weights)):
        for i in range(bound[k], bound[k + 1]):
            c = classes[i]
            for j in range(since[k], until[k]):
                logits[c, j] += weights[k, j]


def adapted_classes(
    data: StreamData, options: TDASettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classify T items by the frozen logits plus the positive minus the negative cache's logits.

    The items that are `offered` (T,) may enter the caches.
    """
    o = options
    classes, dim = data.pool.text_features.shape
    positive = Cache(classes, dim, o.positive_shots, o.positive_alpha, o.positive_beta)
    negative = Cache(classes, dim, o.negative_shots, o.negative_alpha, o.negative_beta)
    adapted = np.empty(len(data), np.int32)
    for block in blocks(len(data), _BLOCK):
        raw = data.features(block)
        features, logits = unit(raw), data.logits(block, raw)
        probability, label = softmax(logits), data.class_index[block]
        entropy = entropy_of(probability)
        one_hot = label[:, None] == np.arange(classes)
        logits += positive.adapt(features, label, entropy, one_hot, offered[block])
        against = (probability > o.mask_low) & (probability < o.mask_high)
        negatives = offered[block] & _is_uncertain(entropy, classes, o)
        logits -= negative.adapt(features, label, entropy, against, negatives)
        adapted[block] = logits.argmax(axis=1)
    return adapted


def run(data: StreamData, options: TDASettings, threshold: ThresholdSettings) -> Decisions:
    """Decide on noise as ZS-CLIP does; offer every sample, and classify by the adapted logits."""
    u = data.noise_score
    thresholds = OnlineThreshold(threshold, options.batch_size)(u)
    class_index = adapted_classes(data, options, ~data.injected)
    return Decisions(class_index, u > thresholds, 1 - u, thresholds)


def _is_uncertain(
    entropy: NDArray[np.float32], classes: int, options: TDASettings
) -> NDArray[np.bool_]:
    """Whether the normalised entropy is within its limits; it is nats / log2(C), as published."""
    normalised = entropy / np.log2(max(classes, 2))
    return (options.entropy_low < normalised) & (normalised < options.entropy_high)
