"""The online adaptive threshold, Eq. 3 (criterion of OWTTT, arXiv 2308.09942).

A queue holds the last N_q noise scores u. Each grid value λ splits it into a noise class (u >= λ)
and a clean class (u < λ). The threshold is the λ with the smallest within-class variance, or the
first of equal ones. An item is then called noise iff u > λ. Its score, even that of injected noise,
enters the queue before the threshold is found.

Scores fall into 101 cells between grid values, and a split depends only on the count, sum and sum
of squares on either side of it, so all splits of a block of queues are a few cumulative sums.
Scores are first rounded to a multiple of a power of two, so that sums are exact whatever entered
and left, and equal splits stay equal.
"""

import math

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.scores import Floats, blocks
from zsntta_cli.settings import ThresholdSettings

GRID = np.arange(100) / 100  # 0.00, 0.01 … 0.99, as in the released code
_LEVELS = np.append(GRID, np.nan)  # above the scores of each cell
_BLOCK = 200  # queues at once: their cells take 320 KB; fewer take more calls, more leave the cache


class OnlineThreshold:
    """The threshold while a stream runs: pass scores in order, in pieces of whole batches.

    `batch_size` items share one threshold, which is found after all of them have entered the queue.
    Only the last piece may end within a batch.
    """

    def __init__(self, settings: ThresholdSettings, batch_size: int = 1) -> None:
        self.settings, self.batch_size = settings, batch_size
        self.scale = 2.0 ** (52 - math.ceil(math.log2(settings.queue + batch_size)))
        self.queue = np.empty(0)  # the last N_q scores, in order
        self.seen = 0
        self.last = 0.5  # used until the first valid threshold

    def __call__(self, scores: Floats, learn: bool = True) -> Floats:
        """The thresholds (T,) for the next T noise scores (T,), which enter the queue."""
        if self.settings.fixed is not None or not learn or not len(scores):
            return np.full(len(scores), self.latest)
        assert self.seen % self.batch_size == 0, "a piece ended within a batch"
        self.seen += len(scores)
        thresholds = np.empty(len(scores))
        size = max(_BLOCK // self.batch_size, 1) * self.batch_size
        for part in blocks(len(scores), size):
            new = scores[part]
            every = np.concatenate([self.queue, new])
            ends = np.minimum(np.arange(0, len(new), self.batch_size) + self.batch_size, len(new))
            splits = self._best_splits(every, len(self.queue), ends)
            thresholds[part] = np.repeat(splits, self.batch_size)[: len(new)]
            self.queue = every[-self.settings.queue :]
        undefined = np.isnan(thresholds)  # of queues without a split: the last valid one, or zero
        if self.settings.degenerate == "zero":
            thresholds[undefined] = 0.0
        else:
            latest = np.maximum.accumulate(np.where(undefined, -1, np.arange(len(thresholds))))
            thresholds = np.where(latest >= 0, thresholds[latest], self.last)
        self.last = float(thresholds[-1])
        return thresholds

    @property
    def latest(self) -> float:
        """The threshold of the last item; 0.5 before the first one."""
        settings = self.settings
        if settings.fixed is None:
            return self.last
        on_noise = settings.fixed_on == "noise-score"  # or the ID score, Eq. 1: clean iff S >= λ
        return settings.fixed if on_noise else 1 - settings.fixed

    def _best_splits(self, every: Floats, old: int, ends: NDArray[np.intp]) -> Floats:
        """The first grid value of the smallest criterion, or NaN if no split has two sides, (E,).

        Each queue is the last N_q of the `every` scores up to the first `old` ones and `ends` (E,)
        more.
        """
        count, is_unweighted = len(every) - old, self.settings.criterion == "unweighted"
        cell = np.searchsorted(GRID, every, side="right")  # the number of grid values not above it
        # A split above a cell without scores equals the one before it, so it is never the first.
        used = np.flatnonzero(np.bincount(cell))
        cell = np.searchsorted(used, cell)
        powers = [np.ones(len(every)), every, every * every][: 3 if is_unweighted else 2]
        units = np.rint(np.array(powers) * self.scale).astype(np.int64)
        # The sums in each cell by time, as whole numbers of units: exact.
        cells = np.zeros((len(powers), count + 1, len(used)), np.int64)
        for of_scores, sums in zip(units, cells, strict=True):
            sums[0] = np.bincount(cell[:old], of_scores[:old], len(used))
        t, room = np.arange(1, count + 1), self.settings.queue - old  # until the first one leaves
        cells[:, t, cell[old:]] += units[:, old:]
        cells[:, t[room:], cell[: len(t[room:])]] -= units[:, : len(t[room:])]
        by_time = np.cumsum(cells, axis=1, out=cells)
        chosen = by_time[:, 1:] if len(ends) == count else by_time[:, ends]
        # They stay in these units, a power of two, which changes no ratio and no order.
        below = np.cumsum(chosen, axis=2, out=chosen).astype(np.float64)
        n0, s0, *q0 = below
        n1, s1, *q1 = below[:, :, -1:] - below
        with np.errstate(invalid="ignore", divide="ignore"):
            if is_unweighted:
                criterion = q0[0] / n0 - (s0 / n0) ** 2 + q1[0] / n1 - (s1 / n1) ** 2
            else:
                criterion = -(s0 * s0 / n0 + s1 * s1 / n1)
        criterion[(n0 == 0) | (n1 == 0)] = np.inf
        best = criterion.argmin(axis=1)
        is_split = np.isfinite(criterion[np.arange(len(best)), best])
        return np.where(is_split, _LEVELS[used[best]], np.nan)
