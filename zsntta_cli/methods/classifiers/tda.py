"""TDA, "Efficient Test-Time Adaptation of Vision-Language Models", arXiv 2403.18293, Sec. 3.2.

Two caches of test samples correct the frozen model's logits. The positive cache shows what a class
looks like; the negative one shows which classes an uncertain sample does not belong to. Each keeps
a few samples of lowest entropy per predicted class. A sample enters before it is classified.

Alone, TDA calls noise what ZS-CLIP calls noise, and offers every sample to the caches, even
those called noise, as the decisions of AdaND's released code show. Behind a detector, only samples
that are called clean are offered. Injected noise is never offered.

The frozen model alone determines what enters and leaves a cache. So a block of items takes one
product, with all keys that are in the cache at any time within the block; each key counts only for
the items of that time. The result is the same as item by item.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.classifiers.blocks import blocks, entropy_of, leaving
from zsntta_cli.methods.kernels.compiled import compiled
from zsntta_cli.methods.scores import softmax, unit
from zsntta_cli.methods.settings import FROM_ONE, FROM_ZERO, SHARE, MethodSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import check, option


@dataclass(frozen=True)
class TDASettings(MethodSettings):
    """TDA, arXiv 2403.18293: two caches of samples that speak for, or against, a class."""

    # It concerns only the threshold; the caches are always updated item by item.
    batch_size: int = option(1, "Items that are decided on at once.", within=FROM_ONE)
    positive_shots: int = option(
        3, "Samples of each class in the positive cache.", within=FROM_ZERO
    )
    positive_alpha: float = option(2.0, "Weight of the positive cache's logits.", within=FROM_ZERO)
    positive_beta: float = option(  # a key at cosine A has the weight exp(-beta (1 - A))
        5.0, "Sharpness of the positive cache's weights.", within=FROM_ZERO
    )
    negative_shots: int = option(
        2, "Samples of each class in the negative cache.", within=FROM_ZERO
    )
    negative_alpha: float = option(
        0.117, "Weight of the negative cache's logits.", within=FROM_ZERO
    )
    negative_beta: float = option(
        1.0, "Sharpness of the negative cache's weights.", within=FROM_ZERO
    )
    # Only samples with low < entropy / log2(C) < high are negatives …
    entropy_low: float = option(0.2, "Smallest entropy of a negative sample.", within=SHARE)
    entropy_high: float = option(0.5, "Largest entropy of a negative sample.", within=SHARE)
    # … which speak against classes with low < probability < high.
    mask_low: float = option(
        0.03, "Smallest probability against which a negative sample counts.", within=SHARE
    )
    mask_high: float = option(
        1.0, "Largest probability against which a negative sample counts.", within=SHARE
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("entropy", "mask"):
            low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
            message = f"{name}-low is {low} and {name}-high {high}, must be 0 <= low < high <= 1."
            check(0 <= low < high <= 1, message)


# Items and keys in one product: they limit memory and change no decision.
_BLOCK, _KEYS = 512, 4096


class Cache:
    """The `shots` samples of lowest entropy so far of each class: their features and labels.

    Sample k of class c is row `c * shots + k` of the keys (C * shots, D), the image features. The
    classes that it counts for or against are kept as sorted pairs (row, class). There are few, so
    memory and time grow with C and not with C².
    """

    def __init__(self, classes: int, dim: int, shots: int, alpha: float, beta: float) -> None:
        self.shots, self.alpha, self.beta = shots, alpha, beta
        self.keys = np.zeros((classes * shots, dim), np.float32)
        self.pairs = np.zeros((0, 2), np.int32)
        self.entropy = np.full(classes * shots, np.inf)  # of a row's sample; inf: the row is free
        self.order = np.zeros(classes * shots, np.int64)  # in which the samples entered
        self.entered = 0

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
        old_until, new_until = leaving(row, item, len(self.keys), len(features))
        logits = np.zeros((values.shape[1], len(features)), np.float32)
        self._add(self.keys, self.pairs.T, np.zeros_like(old_until), old_until, features, logits)
        if len(item):
            keys, pairs = features[item], _pairs(values[item])
            self._add(keys, pairs, item, new_until, features, logits)
            self._keep(row, keys, pairs, new_until == len(features))
        return logits.T

    def _enter(
        self, label: NDArray[np.int32], entropy: NDArray[np.float32], items: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Offer items in turn; return those that entered, and the row of each."""
        rows = np.full(len(items), -1, np.intp)
        entered = np.array([self.entered])
        labels, doubts = label[items], entropy[items].astype(np.float64)
        _place(labels, doubts, self.entropy, self.order, entered, self.shots, rows)
        self.entered = int(entered[0])
        return items[rows >= 0], rows[rows >= 0]

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
            weights *= self.beta
            np.exp(weights, out=weights)
            weights *= self.alpha
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
        self.keys[row[lasts]] = keys[lasts]
        old = self.pairs[~np.isin(self.pairs[:, 0], row)]
        pairs = pairs[:, lasts[pairs[0]]]
        pairs[0] = row[pairs[0]]
        both = np.concatenate([old, pairs.T])
        self.pairs = both[np.argsort(both[:, 0], kind="stable")]


def _pairs(values: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The sorted pairs (2, P) of a row and a class at which values (B, C) are true."""
    return np.stack(np.nonzero(values)).astype(np.int32)


@compiled
def _place(labels, entropies, kept, order, entered, shots, rows):  # type: ignore[no-untyped-def]
    """Write the row of each sample that enters: a free one of its class, or that of the worst.

    `kept` (C * shots,) are the entropies of the rows, inf if they are free, and `order` tells the
    newest of equal ones. `entered` (1,) counts the samples.
    """
    for i in range(len(labels)):
        worst, first = -1, labels[i] * shots
        for row in range(first, first + shots):
            if (
                worst < 0
                or kept[row] > kept[worst]
                or (kept[row] == kept[worst] and order[row] > order[worst])
            ):
                worst = row
            if kept[row] == np.inf:
                worst = row
                break
        if worst >= 0 and (kept[worst] == np.inf or entropies[i] < kept[worst]):
            rows[i] = worst
            kept[worst] = entropies[i]
            order[worst] = entered[0]
            entered[0] += 1


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


class TDA:
    """The classifier while the stream runs."""

    def __init__(self, data: StreamData, options: TDASettings) -> None:
        self.options = o = options
        classes, dim = data.pool.text_features.shape
        self.positive = Cache(classes, dim, o.positive_shots, o.positive_alpha, o.positive_beta)
        self.negative = Cache(classes, dim, o.negative_shots, o.negative_alpha, o.negative_beta)

    def classify(self, items: StreamData, offered: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Classify T items by the frozen logits plus the positive minus the negative cache's.

        The items that are `offered` (T,) may enter the caches.
        """
        o, classes = self.options, len(items.pool.text_features)
        adapted = np.empty(len(items), np.int32)
        for block in blocks(len(items), _BLOCK):
            raw = items.features(block)
            features, logits = unit(raw), items.logits(block, raw)
            probability, label = softmax(logits), items.class_index[block]
            entropy = entropy_of(probability)
            one_hot = label[:, None] == np.arange(classes)
            logits += self.positive.adapt(features, label, entropy, one_hot, offered[block])
            against = (probability > o.mask_low) & (probability < o.mask_high)
            negatives = offered[block] & _is_uncertain(entropy, classes, o)
            logits -= self.negative.adapt(features, label, entropy, against, negatives)
            adapted[block] = logits.argmax(axis=1)
        return adapted


class TDAAlone:
    """TDA as published: ZS-CLIP's rule decides on noise, and every sample is offered."""

    def __init__(
        self, data: StreamData, options: TDASettings, threshold: ThresholdSettings
    ) -> None:
        self.threshold = OnlineThreshold(threshold, options.batch_size)
        self.classifier = TDA(data, options)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on noise as ZS-CLIP does; classify by the adapted logits."""
        u = items.noise_score
        thresholds = self.threshold(u, learn)
        class_index = self.classifier.classify(items, ~items.injected & learn)
        return Decisions(class_index, u > thresholds, 1 - u, thresholds)


def _is_uncertain(
    entropy: NDArray[np.float32], classes: int, options: TDASettings
) -> NDArray[np.bool_]:
    """Whether the normalised entropy is within its limits; it is nats / log2(C), as published."""
    normalised = entropy / np.log2(max(classes, 2))
    return (options.entropy_low < normalised) & (normalised < options.entropy_high)
