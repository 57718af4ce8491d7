"""OODD, "OODD: Test-time Out-of-Distribution Detection with Dynamic Dictionary", arXiv 2503.10468.

A dictionary keeps the N items of lowest ID score q so far. An item's score is q minus its K-th
largest cosine with them. An item enters before it is scored, so it is its own first neighbour.

q is MCM at the model's scale. The released CLIP variant takes the softmax of raw cosines, which is
about 1/C for any image, so only the cosine matters (`--set oodd-temperature=1`). Here the score is
mapped to [0, 1]: (q + 1 - cos) / 2, where a cosine below 0 counts as 0 (two images of CLIP have
more). So the noise score is the mean of u = 1 - q and this cosine, and a step of 0.01 of the
threshold's grid is 0.02 of their sum. With K entries or fewer the noise score is u.

Injected noise always enters, in place of the entry of highest q, and stays as its own q permits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.method import FROM_ONE, FROZEN, Method, MethodSettings
from zsntta_cli.methods.ood_scores import image_scores
from zsntta_cli.methods.scores import mcm, unit
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import Range, check, option

_BLOCK = 256  # items whose features are read at once, or one batch


class OODD(Method):
    """OODD, arXiv 2503.10468: items are compared with a dictionary of those of lowest ID score."""

    @dataclass(frozen=True)
    class Settings(MethodSettings):
        batch_size: int = option(1, "Items that are decided on at once.", within=FROM_ONE)
        oodd_items: int = option(2048, "N: items in the dictionary.", within=Range(least=2))
        oodd_neighbour: int = option(
            5, "K: rank of the nearest item of the dictionary that counts.", within=FROM_ONE
        )
        oodd_temperature: float | None = option(  # the released code takes 1
            None,
            "Temperature of q, the softmax over cosines; none: 1 / logit scale.",
            within=Range(least=1e-4),
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            items, rank = self.oodd_items, self.oodd_neighbour
            check(items > rank, f"oodd-items is {items}, must be above oodd-neighbour, {rank}.")

    cites = ("yang2025oodd",)
    cost = "keeps N items of D numbers; compares each item with all of them"
    official = {"batch_size": 64, "oodd_temperature": 1.0}  # as released
    class_probability = FROZEN

    def __init__(self, data: StreamData, options: Settings, threshold: ThresholdSettings) -> None:
        self.options = options
        self.dictionary = Dictionary(options, data.pool.image_features.shape[1])
        self.threshold = OnlineThreshold(threshold, options.batch_size)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise iff the mean of u and the K-th cosine is above the threshold."""
        temperature = self.options.oodd_temperature
        alone = items.noise_score  # 1 - q
        if temperature is not None:
            alone = 1 - image_scores(items, mcm, scale=1 / temperature)
        u = self._scores(items, alone, learn)
        own = self.threshold(u, learn)
        return Decisions(items.class_index, u > own, 1 - u, detector_threshold=own)

    def _scores(
        self, items: StreamData, noise_score: NDArray[np.float64], learn: bool
    ) -> NDArray[np.float64]:
        """The noise scores (T,) in [0, 1] of items in order, given those without the dictionary."""
        size = self.options.batch_size
        scores, step = noise_score.copy(), (_BLOCK // size or 1) * size
        for start in range(0, len(items), step):
            features = unit(items.features(slice(start, start + step)))
            for first in range(0, len(features), size):
                batch = slice(start + first, start + min(first + size, len(features)))
                x, u = features[first : first + size], noise_score[batch]
                if learn:
                    self.dictionary.offer(x, u, items.injected[batch])
                cosine = self.dictionary.cosines(x)
                if cosine is not None:
                    scores[batch] = (u + np.clip(cosine, 0, 1)) / 2
        return scores


class Dictionary:
    """The N items of highest noise score; their features (N, D) have unit norm."""

    def __init__(self, options: OODD.Settings, dim: int) -> None:
        self.options = options
        self.keys = np.zeros((options.oodd_items, dim), np.float32)
        self.scores = np.zeros(options.oodd_items)  # noise scores
        self.order = np.zeros(options.oodd_items, np.int64)  # in which they arrived
        self.filled, self.seen = 0, 0  # entries, and all items that were offered

    def offer(
        self,
        features: NDArray[np.float32],
        u: NDArray[np.float64],
        injected: NDArray[np.bool_],
    ) -> None:
        """Offer items (B, D) in turn; injected noise always enters."""
        for feature, score, is_injected in zip(features, u, injected, strict=True):
            is_free = self.filled < len(self.keys)
            row = self.filled if is_free else self._least()
            if is_free or is_injected or score > self.scores[row]:
                self.keys[row], self.scores[row], self.order[row] = feature, score, self.seen
            self.filled, self.seen = self.filled + is_free, self.seen + 1

    def _least(self) -> int:
        """The entry of the lowest score, which leaves next; of equal ones the newest."""
        rows = np.flatnonzero(self.scores == self.scores.min())
        return int(rows[self.order[rows].argmax()])

    def cosines(self, features: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """The K-th largest cosines (B,) of items (B, D), or None with K entries or fewer."""
        k = self.options.oodd_neighbour
        if self.filled <= k:
            return None
        return np.partition(features @ self.keys[: self.filled].T, -k, axis=1)[:, -k]
