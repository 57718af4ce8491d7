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
from zsntta_cli.methods.classifiers.adapting import entropy_of
from zsntta_cli.methods.method import FROM_ONE, FROM_ZERO, SHARE, Classifier, Method, MethodSettings
from zsntta_cli.methods.scores import softmax, unit
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import check, option


@dataclass(frozen=True)
class TDASettings(MethodSettings):
    """The settings of TDA."""

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


_BLOCK = 512  # items in one product: it limits memory and changes no decision
_FEW = 4  # classes for which a key counts: with more, one product is faster than sums
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Cache:
    """The `shots` samples of lowest entropy so far of each class.

    Sample k of class c is row `c * shots + k` of the keys (C * shots, D), the image features, and
    of the values (C * shots, C), the classes for or against which it counts.
    """

    def __init__(self, classes: int, dim: int, shots: int, alpha: float, beta: float) -> None:
        self.shots, self.alpha, self.beta = shots, alpha, beta
        self.keys = np.zeros((classes * shots, dim), np.float32)
        self.values = np.zeros((classes * shots, classes), bool)
        self.entropies = np.full((classes, shots), np.inf)  # inf: the place is free
        self.order = np.zeros((classes, shots), np.int64)  # in which the samples entered
        self.entered = 0

    def adapt(
        self, features: Floats, label: NDArray[np.int32], entropy: Floats, values: Mask,
        offered: Mask,
    ) -> Floats:  # fmt: skip
        """Offer samples in turn; return the logits alpha * exp(-beta (1 - A)) @ values (B, C).

        A are the cosines of a sample's feature with the keys, after the sample itself was offered.
        `features` (B, D) have unit norm, and `values` (B, C) are what a sample stores if it enters.
        Samples that are not `offered` (B,) do not enter.
        """
        end = len(features)
        rows = np.flatnonzero(np.isfinite(self.entropies)).tolist()  # of the keys, old, then new
        since, until = [0] * len(rows), [end] * len(rows)  # the items for which a key counts
        latest = {row: key for key, row in enumerate(rows)}
        old, entering = rows.copy(), []
        for i in np.flatnonzero(offered).tolist():
            row = self._place(int(label[i]), float(entropy[i]))
            if row is None:
                continue
            if row in latest:
                until[latest[row]] = i
            latest[row] = len(rows)
            rows.append(row)
            since.append(i)
            until.append(end)
            entering.append(i)
        keys = np.concatenate([self.keys[old], features[entering]])
        counts = np.concatenate([self.values[old], values[entering]])
        stays = np.array(until) == end
        self.keys[np.array(rows, int)[stays]] = keys[stays]
        self.values[np.array(rows, int)[stays]] = counts[stays]
        weights = self.alpha * np.exp(self.beta * (keys @ features.T - 1))
        item = np.arange(end)
        weights[(item < np.array(since)[:, None]) | (item >= np.array(until)[:, None])] = 0
        return summed(weights, counts)

    def _place(self, label: int, entropy: float) -> int | None:
        """The row that a sample takes, or None if it does not enter.

        It is a free one of its class, or that of the highest entropy; of equal ones the newest.
        """
        if not self.shots:
            return None
        entropies, order = self.entropies[label], self.order[label]
        k = int(np.lexsort((order, entropies))[-1])
        if np.isinf(entropies[k]):
            k = int(np.isinf(entropies).argmax())
        elif entropy >= entropies[k]:
            return None
        entropies[k], order[k] = entropy, self.entered
        self.entered += 1
        return label * self.shots + k


def summed(weights: Floats, counts: Mask) -> Floats:
    """The sums (B, C) of the weights (K, B) of those keys that count for a class, by (K, C).

    Where a key counts for few classes, as in the positive cache, a product would add up zeros: at
    1,000 classes it takes most of the time.
    """
    of_class, key = np.nonzero(counts.T)
    if len(key) > _FEW * len(counts):
        return weights.T @ counts.astype(np.float32)
    sums = np.zeros((counts.shape[1], weights.shape[1]), np.float32)
    starts = np.flatnonzero(np.diff(of_class, prepend=-1))
    if len(starts):
        sums[of_class[starts]] = np.add.reduceat(weights[key], starts)
    return sums.T


class TDA(Classifier):
    """TDA, arXiv 2403.18293: two caches of samples that speak for, or against, a class."""

    Settings = TDASettings
    cites = ("karmanov2024efficient",)
    cost = "keeps positive-shots + negative-shots images of each class; compares items with all"

    def __init__(self, data: StreamData, options: TDASettings) -> None:
        self.options = o = options
        classes, dim = data.pool.text_features.shape
        self.positive = Cache(classes, dim, o.positive_shots, o.positive_alpha, o.positive_beta)
        self.negative = Cache(classes, dim, o.negative_shots, o.negative_alpha, o.negative_beta)

    def classify(self, items: StreamData, offered: Mask) -> NDArray[np.int32]:
        """Classify T items by the frozen logits plus the positive minus the negative cache's.

        The items that are `offered` (T,) may enter the caches.
        """
        o, classes = self.options, len(items.pool.text_features)
        adapted = np.empty(len(items), np.int32)
        for start in range(0, len(items), _BLOCK):
            block = slice(start, start + _BLOCK)
            raw = items.features(block)
            features, logits = unit(raw), items.logits(block, raw)
            probability, label = softmax(logits), items.class_index[block]
            entropy = entropy_of(probability)
            one_hot = label[:, None] == np.arange(classes)
            logits += self.positive.adapt(features, label, entropy, one_hot, offered[block])
            against = (probability > o.mask_low) & (probability < o.mask_high)
            # In nats over log2(C), as published.
            share = entropy / np.log2(max(classes, 2))
            negatives = offered[block] & (o.entropy_low < share) & (share < o.entropy_high)
            logits -= self.negative.adapt(features, label, entropy, against, negatives)
            adapted[block] = logits.argmax(axis=1)
        return adapted


class TDAAlone(Method):
    """TDA, arXiv 2403.18293: two caches of samples that speak for, or against, a class.

    As published: ZS-CLIP's rule decides on noise, and every sample is offered.
    """

    Settings = TDASettings
    cites = TDA.cites
    cost = TDA.cost
    is_probability = True

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
