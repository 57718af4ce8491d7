"""OODD, "OODD: Test-time Out-of-Distribution Detection with Dynamic Dictionary", arXiv 2503.10468.

A dictionary keeps the N items of lowest ID-ness q seen so far; the score of an item is q less its
K-th largest cosine to them. An item enters before it is scored: itself is its first neighbour.

q is MCM at the model's scale. The released CLIP variant takes the softmax of raw cosines, which is
about 1/C for any image: only the cosine is left of its score (`--oodd-temperature 1`). Here the
score is brought to [0, 1]: (q + 1 - cos) / 2, cosines below 0 counting as 0 (any two images of CLIP
have more). So the noise score is the mean of u = 1 - q and that cosine, and a step of 0.01 of the
threshold's grid is one of 0.02 of their sum. While there are K entries or fewer it is u alone.

Known noise always enters, in place of the entry of highest q, and stays while its own q lets it.

Going in blocks: an item against all entries at the block's start and all that enter within it are
two products, and each entry counts within its own time only.
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

_BLOCK = 256  # items a product at a time, or one batch: changes no decision


def run(data: StreamData, options: OoddSettings, threshold: ThresholdSettings) -> Decisions:
    """Noise iff the mean of u and of the K-th cosine is above the online threshold."""
    u = noise_scores(data, options)
    thresholds = OnlineThreshold(threshold, options.batch_size)(u)
    return Decisions(data.class_index, u > thresholds, 1 - u, detector_threshold=thresholds)


def noise_scores(data: StreamData, options: OoddSettings) -> NDArray[np.float64]:
    """Noise scores (T,) in [0, 1] of all items in order."""
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
    """Noise scores u = 1 - q (T,) of all items, without the dictionary."""
    if temperature is None:
        return data.noise_score
    return 1 - image_scores(data, mcm, scale=1 / temperature)


class Dictionary:
    """The N items of highest noise score, features (N, D) of unit norm."""

    def __init__(self, options: OoddSettings, dim: int) -> None:
        self._options = options
        self._keys = np.zeros((options.oodd_items, dim), np.float32)
        # (noise score, minus its arrival, row): the first to leave is first; of equals the newest
        self._ranked: list[tuple[float, int, int]] = []
        self._arrivals = 0

    def push(
        self, features: NDArray[np.float32], u: NDArray[np.float64], known: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """K-th largest cosines (B,) of whole batches, each of which enters before it is scored.

        NaN where there are no more than K entries.
        """
        count, size = len(u), self._options.batch_size
        filled = len(self._ranked)
        item, row, sizes = self._enter(u, known)
        when = np.minimum(np.arange(count) // size * size + size, count) - 1  # its batch is in
        left, gone = leaving(row, item, len(self._keys), count)
        new = features[item]
        cosines, best = np.empty(count), np.empty(self._options.oodd_neighbour, np.float32)
        old = features @ self._keys[:filled].T
        _kth_largest(old, left[:filled], features @ new.T, item, gone, when, best, cosines)
        stays = gone == count
        self._keys[row[stays]] = new[stays]
        cosines[sizes[when] <= self._options.oodd_neighbour] = np.nan
        return cosines

    def _enter(
        self, u: NDArray[np.float64], known: NDArray[np.bool_]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Offer items in turn: those that entered, their rows, and entries (B,) after each item."""
        ranked, items, rows, sizes = self._ranked, [], [], []
        for i, (score, is_known) in enumerate(zip(u.tolist(), known.tolist(), strict=True)):
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
def _kth_largest(old, left, new, since, gone, when, best, found):  # type: ignore[no-untyped-def]
    """Write the K-th largest of what counts for each item: products (B, N) and (B, E).

    Old entries count before `left` (N,), new ones from `since` (E,) to before `gone` (E,); `best`
    is room for K values.
    """
    k = len(best)
    for i in range(len(found)):
        now = when[i]
        best[:] = -np.inf
        for j in range(old.shape[1]):
            if old[i, j] > best[k - 1] and left[j] > now:
                _insert(best, old[i, j])
        for j in range(new.shape[1]):
            if new[i, j] > best[k - 1] and since[j] <= now < gone[j]:
                _insert(best, new[i, j])
        found[i] = best[k - 1]


def _insert(best: NDArray[np.float32], value: float) -> None:
    """Put a value into the largest ones, descending; the last one leaves."""
    k = len(best) - 1
    while k > 0 and best[k - 1] < value:
        best[k] = best[k - 1]
        k -= 1
    best[k] = value
