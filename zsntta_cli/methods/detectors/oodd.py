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

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.method import AT_ONCE, FROZEN, Method, MethodSettings, cosine_temperature
from zsntta_cli.methods.scores import Features, Floats, blocks, mcm, unit
from zsntta_cli.settings.options import Range, count, option


class OODD(Method):
    """OODD, arXiv 2503.10468: items are compared with those of the lowest ID scores so far."""

    class Settings(MethodSettings):
        batch_size: int = count(1, AT_ONCE)
        oodd_items: int = option(2048, "N: size of the dictionary.", within=Range(least=2))
        oodd_neighbour: int = count(5, "K: rank of the nearest dictionary item that counts.")
        oodd_temperature: float | None = cosine_temperature()  # of q; the released code takes 1

    cites = ("yang2025oodd",)
    cost = "keeps N items of D numbers; compares each item with all of them"
    official = {"batch_size": 64, "oodd_temperature": 1.0}  # as released
    class_probability = FROZEN

    def start(self, data: StreamData) -> None:
        count, dim = self.options.oodd_items, data.image_features.shape[1]
        self.keys = np.zeros((count, dim), np.float32)  # unit norm
        self.u = np.zeros(count)  # noise scores of the entries
        self.order = np.zeros(count, np.int64)  # of arrival
        self.filled, self.seen = 0, 0  # entries, and all items that were offered

    def scores(self, items: StreamData, learn: bool) -> Floats:
        """1 - (u + cos) / 2 (T,), where cos is the K-th largest cosine with the dictionary."""
        temperature, k = self.options.oodd_temperature, self.options.oodd_neighbour
        alone = items.noise_score  # u = 1 - q
        if temperature is not None:
            alone = 1 - items.score(mcm, temperature=temperature)
        scores = alone.copy()
        for batch in blocks(len(items), self.options.batch_size):
            x = unit(items.features(batch))
            if learn:
                for item in zip(x, alone[batch], items.injected[batch], strict=True):
                    self._offer(*item)
            if self.filled > k:
                cosines = x @ self.keys[: self.filled].T
                nearest = np.partition(cosines, -k, axis=1)[:, -k]
                scores[batch] = (alone[batch] + np.clip(nearest, 0, 1)) / 2
        return 1 - scores

    def _offer(self, feature: Features, u: float, is_injected: bool) -> None:
        """Keep an item in a free place, or in that of the entry of lowest u, the newest of equal.

        Injected noise always enters.
        """
        row = self.filled
        if is_full := row == len(self.keys):
            lowest = np.flatnonzero(self.u == self.u.min())
            row = int(lowest[self.order[lowest].argmax()])
        if not is_full or is_injected or u > self.u[row]:
            self.keys[row], self.u[row], self.order[row] = feature, u, self.seen
        self.filled, self.seen = self.filled + (not is_full), self.seen + 1
