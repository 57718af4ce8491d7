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

import heapq

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.kernels.compiled import compiled
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.classifiers.blocks import leaving
from zsntta_cli.methods.ood_scores import image_scores
from zsntta_cli.methods.scores import mcm, unit
from zsntta_cli.methods.settings import OoddSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

_BLOCK = 256  # items in one product, or one batch: it changes no decision


def run(data: StreamData, options: OoddSettings, threshold: ThresholdSettings) -> Decisions:
    """Call an item noise iff the mean of u and the K-th cosine is above the online threshold."""
    u = noise_scores(data, options)
    thresholds = OnlineThreshold(threshold, options.batch_size)(u)
    return Decisions(data.class_index, u > thresholds, 1 - u, detector_threshold=thresholds)


def noise_scores(data: StreamData, options: OoddSettings) -> NDArray[np.float64]:
    """The noise scores (T,) in [0, 1] of all items in order."""
    dictionary = Dictionary(options, data.pool.image_features.shape[1])
    noise_score = _noise_scores_alone(data, options.oodd_temperature)
    scores, step = noise_score.copy(), _BLOCK // options.batch_size or 1
    for start in range(0, len(data), step * options.batch_size):
        block = slice(start, min(start + step * options.batch_size, len(data)))
        u = noise_score[block]
        cosine = dictionary.push(unit(data.features(block)), u, data.injected[block])
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
        self._options = options
        self._keys = np.zeros((options.oodd_items, dim), np.float32)
        # (noise score, minus its arrival, row); the first one leaves next, of equal ones the newest
        self._ranked: list[tuple[float, int, int]] = []
        self._arrivals = 0

    def push(
        self, features: NDArray[np.float32], u: NDArray[np.float64], injected: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return the K-th largest cosines (B,) of whole batches; each enters before it is scored.

        They are NaN if there are no more than K entries.
        """
        count, size = len(u), self._options.batch_size
        filled = len(self._ranked)
        item, row, sizes = self._enter(u, injected)
        when = np.minimum(np.arange(count) // size * size + size, count) - 1  # the end of its batch
        old_end, new_end = leaving(row, item, len(self._keys), count)
        new = features[item]
        cosines, best = np.empty(count), np.empty(self._options.oodd_neighbour, np.float32)
        old = features @ self._keys[:filled].T
        _kth_largest(old, old_end[:filled], features @ new.T, item, new_end, when, best, cosines)
        stays = new_end == count
        self._keys[row[stays]] = new[stays]
        cosines[sizes[when] <= self._options.oodd_neighbour] = np.nan
        return cosines

    def _enter(
        self, u: NDArray[np.float64], injected: NDArray[np.bool_]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Offer items in turn; return those that entered, their rows, and sizes (B,) after each."""
        ranked, items, rows, sizes = self._ranked, [], [], []
        for i, (score, is_known) in enumerate(zip(u.tolist(), injected.tolist(), strict=True)):
            if (row := len(ranked)) < len(self._keys):
                heapq.heappush(ranked, (score, -self._arrivals, row))
            elif is_known or score > ranked[0][0]:
                row = ranked[0][2]
                heapq.heapreplace(ranked, (score, -self._arrivals, row))
            else:
                row = -1
            if row >= 0:
                items.append(i)
                rows.append(row)
            self._arrivals += 1
            sizes.append(len(ranked))
        return np.array(items, np.intp), np.array(rows, np.intp), np.array(sizes, np.intp)


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
