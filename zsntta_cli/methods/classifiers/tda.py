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

from bisect import insort
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.adapting import entropy_of
from zsntta_cli.methods.detectors.zs_clip import ZsClip
from zsntta_cli.methods.method import Classifier, MethodSettings, Pair
from zsntta_cli.methods.scores import Features, Mask, blocks, softmax, unit
from zsntta_cli.settings.options import amount, share

_BLOCK = 512  # items in one product: it limits memory and changes no decision


class Cache:
    """The `shots` samples of lowest entropy so far of each class.

    A sample has its image feature (D,) as a key, and as a value the classes (C,) for or against
    which it counts.
    """

    def __init__(self, shots: int, alpha: float, beta: float) -> None:
        self.shots, self.alpha, self.beta = shots, alpha, beta
        # By class: (entropy, key, value, number of the first item that it counts for), sorted.
        self.held: dict[int, list[tuple[float, Features, Mask, int]]] = {}
        self.seen = 0  # items of blocks in which a sample entered

    def adapt(
        self, features: Features, label: NDArray[np.int32], entropy: Features, values: Mask,
        offered: Mask,
    ) -> Features:  # fmt: skip
        """Offer samples in turn; return the logits alpha * exp(-beta (1 - A)) @ values (B, C).

        A are the cosines of a sample's feature with the keys, after the sample itself was offered.
        `features` (B, D) have unit norm, and `values` (B, C) are what a sample stores if it enters.
        Samples that are not `offered` (B,) do not enter.
        """
        item, stop = self.seen + np.arange(len(features)), self.seen + len(features)
        counted = []  # samples, with the number of the item before which they left
        for i in np.flatnonzero(offered & (self.shots > 0)).tolist():
            nats, held = float(entropy[i]), self.held.setdefault(int(label[i]), [])
            if len(held) == self.shots:  # the last of equal ones is the newest
                if nats >= held[-1][0]:
                    continue
                counted.append((*held.pop(), int(item[i])))
            sample = nats, features[i].copy(), values[i].copy(), int(item[i])
            insort(held, sample, key=itemgetter(0))
            self.seen = stop
        counted += [(*sample, stop) for held in self.held.values() for sample in held]
        if not counted:
            return np.zeros(values.shape, np.float32)
        _, keys, counts, first, end = map(np.array, zip(*counted, strict=True))
        weights = self.alpha * np.exp(self.beta * (keys @ features.T - 1))
        weights[(item < first[:, None]) | (item >= end[:, None])] = 0
        return np.asarray(weights.T @ counts.astype(np.float32))


class TDA(Classifier):
    """TDA, arXiv 2403.18293: two caches of samples that speak for, or against, a class."""

    class Settings(MethodSettings):
        positive_shots: int = amount(3, "Number of samples of each class in the positive cache.")
        positive_alpha: float = amount(2.0, "Weight of the positive cache's logits.")
        # a key at cosine A has the weight exp(-beta (1 - A))
        positive_beta: float = amount(5.0, "Sharpness of the positive cache's weights.")
        negative_shots: int = amount(2, "Number of samples of each class in the negative cache.")
        negative_alpha: float = amount(0.117, "Weight of the negative cache's logits.")
        negative_beta: float = amount(1.0, "Sharpness of the negative cache's weights.")
        # Only samples with low < entropy / log2(C) < high are negatives …
        entropy_low: float = share(
            0.2, "Entropy / log2(C) above which a sample may enter the negative cache."
        )
        entropy_high: float = share(
            0.5, "Entropy / log2(C) below which a sample may enter the negative cache."
        )
        # … which speak against classes with low < probability < high.
        mask_low: float = share(
            0.03, "A sample in the negative cache lowers the classes with a probability above this."
        )
        mask_high: float = share(
            1.0, "A sample in the negative cache lowers the classes with a probability below this."
        )

    cites = ("karmanov2024efficient",)
    cost = "keeps positive-shots + negative-shots images of each class; compares items with all"

    def start(self, data: StreamData) -> None:
        o = self.options
        self.positive = Cache(o.positive_shots, o.positive_alpha, o.positive_beta)
        self.negative = Cache(o.negative_shots, o.negative_alpha, o.negative_beta)

    def classify(self, items: StreamData, offered: Mask) -> NDArray[np.int32]:
        """Classify T items by the frozen logits plus the positive minus the negative cache's.

        The items that are `offered` (T,) may enter the caches.
        """
        o, classes = self.options, len(items.text_features)
        adapted = np.empty(len(items), np.int32)
        for block in blocks(len(items), _BLOCK):
            features, logits = unit(items.features(block)), items.logits(block)
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


ALONE = Pair(ZsClip, TDA, offers_all=True)  # as it was published
