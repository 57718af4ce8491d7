"""OODD, "OODD: Test-time Out-of-Distribution Detection with Dynamic Dictionary", arXiv 2503.10468.

A dictionary keeps the N items of lowest ID score q so far. An item's score is q minus its K-th
largest cosine with them. An item enters before it is scored, so it is its own first neighbour.

q is MCM at the model's scale. The released CLIP variant takes the softmax of raw cosines, which is
about 1/C for any image, so only the cosine matters (`--oodd-temperature 1`). Here the score is
mapped to [0, 1]: (q + 1 - cos) / 2, where a cosine below 0 counts as 0 (two images of CLIP have
more). So the noise score is the mean of u = 1 - q and this cosine, and a step of 0.01 of the
threshold's grid is 0.02 of their sum. With K entries or fewer the noise score is u.

Injected noise always enters, in place of the entry of highest q, and stays as its own q permits.

A block of items takes two products: with all entries at its start, and with all that enter within
it. Each entry counts only within its own time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.classifiers.blocks import leaving
from zsntta_cli.methods.kernels.compiled import compiled
from zsntta_cli.methods.ood_scores import image_scores
from zsntta_cli.methods.scores import mcm, unit
from zsntta_cli.methods.settings import FROM_ONE, MethodSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import Range, check, option


@dataclass(frozen=True)
class OoddSettings(MethodSettings):
    """OODD, arXiv 2503.10468: items are compared with a dictionary of those of lowest ID score."""

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
        message = (
            f"oodd-items is {self.oodd_items}, must be above oodd-neighbour, {self.oodd_neighbour}."
        )
        check(self.oodd_items > self.oodd_neighbour, message)


_BLOCK = 256  # items in one product, or one batch: it changes no decision


class OODD:
    """OODD while the stream runs, in pieces of whole batches."""

    def __init__(
        self, data: StreamData, options: OoddSettings, threshold: ThresholdSettings
    ) -> None:
        self.options = options
        self.dictionary = Dictionary(options, data.pool.image_features.shape[1])
        self.threshold = OnlineThreshold(threshold, options.batch_size)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise iff the mean of u and the K-th cosine is above the threshold."""
        u = self._scores(items, learn)
        own = self.threshold(u, learn)
        return Decisions(items.class_index, u > own, 1 - u, detector_threshold=own)

    def _scores(self, items: StreamData, learn: bool) -> NDArray[np.float64]:
        """The noise scores (T,) in [0, 1] of items in order."""
        noise_score = _noise_scores_alone(items, self.options.oodd_temperature)
        size = self.options.batch_size
        scores, step = noise_score.copy(), (_BLOCK // size or 1) * size
        for start in range(0, len(items), step):
            block = slice(start, min(start + step, len(items)))
            u, features = noise_score[block], unit(items.features(block))
            cosine = self.dictionary.push(features, u, items.injected[block], learn)
            has_neighbours = ~np.isnan(cosine)
            scores[block][has_neighbours] = (u + np.clip(cosine, 0, 1))[has_neighbours] / 2
        return scores


def _noise_scores_alone(data: StreamData, temperature: float | None) -> NDArray[np.float64]:
    """The noise scores u = 1 - q (T,) of all items, without the dictionary."""
    if temperature is None:
        return data.noise_score
    return 1 - image_scores(data, mcm, scale=1 / temperature)


class Dictionary:
    """The N items of highest noise score; their features (N, D) have unit norm."""

    def __init__(self, options: OoddSettings, dim: int) -> None:
        self.options = options
        self.keys = np.zeros((options.oodd_items, dim), np.float32)
        self.scores = np.zeros(options.oodd_items)  # noise scores
        self.order = np.zeros(options.oodd_items, np.int64)  # in which they arrived
        self.counts = np.zeros(2, np.int64)  # of entries, and of all items that were offered

    def push(
        self,
        features: NDArray[np.float32],
        u: NDArray[np.float64],
        injected: NDArray[np.bool_],
        learn: bool = True,
    ) -> NDArray[np.float64]:
        """Return the K-th largest cosines (B,) of whole batches; each enters before it is scored.

        They are NaN if there are no more than K entries. Without learning none enters.
        """
        count, size = len(u), self.options.batch_size
        filled = int(self.counts[0])
        row, sizes = np.full(count, -1, np.intp), np.full(count, filled, np.intp)
        if learn:
            _enter(u, injected, self.scores, self.order, self.counts, row, sizes)
        item = np.flatnonzero(row >= 0)
        row = row[item]
        when = np.minimum(np.arange(count) // size * size + size, count) - 1  # the end of its batch
        old_end, new_end = leaving(row, item, len(self.keys), count)
        new = features[item]
        cosines, best = np.empty(count), np.empty(self.options.oodd_neighbour, np.float32)
        old = features @ self.keys[:filled].T
        _kth_largest(old, old_end[:filled], features @ new.T, item, new_end, when, best, cosines)
        stays = new_end == count
        self.keys[row[stays]] = new[stays]
        cosines[sizes[when] <= self.options.oodd_neighbour] = np.nan
        return cosines


@compiled
def _enter(u, injected, scores, order, counts, row, sizes):  # type: ignore[no-untyped-def]
    """Offer items in turn; write the row of each that enters, and the entries (B,) after each.

    The one of lowest score leaves, of equal ones the newest. Injected noise always enters.
    """
    least = -1  # the row that leaves next, or -1 until it is looked for
    for i in range(len(u)):
        place = -1
        if counts[0] < len(scores):
            place = counts[0]
            counts[0] += 1
        else:
            if least < 0:
                least = 0
                for r in range(1, len(scores)):
                    is_newer = scores[r] == scores[least] and order[r] > order[least]
                    if scores[r] < scores[least] or is_newer:
                        least = r
            if injected[i] or u[i] > scores[least]:
                place, least = least, -1
        if place >= 0:
            row[i] = place
            scores[place] = u[i]
            order[place] = counts[1]
            least = -1
        counts[1] += 1
        sizes[i] = counts[0]


@compiled
def _kth_largest(old, old_end, new, since, new_end, when, best, cosines):  # type: ignore[no-untyped-def]
    """Write the K-th largest product of each item with old entries (B, N) and new ones (B, E).

    Old entries count before `old_end` (N,), new ones from `since` (E,) to before `new_end` (E,).
    `best` holds K values.
    """
    k = len(best)
    for i in range(len(cosines)):
        now = when[i]
        best[:] = -np.inf
        for j in range(old.shape[1]):
            if old[i, j] > best[k - 1] and old_end[j] > now:
                _insert(best, old[i, j])
        for j in range(new.shape[1]):
            if new[i, j] > best[k - 1] and since[j] <= now < new_end[j]:
                _insert(best, new[i, j])
        cosines[i] = best[k - 1]


def _insert(best: NDArray[np.float32], value: float) -> None:
    """Put a value among the largest ones, which are sorted; the smallest is dropped."""
    k = len(best) - 1
    while k > 0 and best[k - 1] < value:
        best[k] = best[k - 1]
        k -= 1
    best[k] = value
