"""The online adaptive threshold, Eq. 3 (criterion of OWTTT, arXiv 2308.09942).

A queue holds the last N_q noise scores u. Each grid value λ splits it into a noise class (u >= λ)
and a clean class (u < λ). The threshold is the λ with the smallest within-class variance, or the
first of equal ones. An item is then called noise iff u > λ. Its score, even that of injected noise,
enters the queue before the threshold is found.

This takes half a microsecond per item: scores fall into 101 cells between grid values, a split
depends only on the count, sum and sum of squares on either side of it, and a new item changes one
or two cells. Scores are first rounded to a multiple of a power of two, so that sums are exact
whatever entered and left, and equal splits stay equal.
"""

import math

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.kernels.compiled import compiled
from zsntta_cli.settings import ThresholdSettings

GRID = np.arange(100) / 100  # 0.00, 0.01 … 0.99, as in the released code
UNDEFINED = -1.0  # threshold of a queue that no grid value splits
_CELLS = len(GRID) + 1

Floats = NDArray[np.float64]


class OnlineThreshold:
    """The threshold while a stream runs: pass scores in order, in pieces of whole batches.

    `batch_size` items share one threshold, which is found after all of them have entered the queue.
    Only the last piece may end within a batch.
    """

    def __init__(self, settings: ThresholdSettings, batch_size: int = 1) -> None:
        self.settings = settings
        self.batch_size = batch_size
        window = settings.queue + batch_size
        self.scale = 2.0 ** (52 - math.ceil(math.log2(window)))
        self.ring = np.zeros(settings.queue)
        self.cells = np.zeros((3, _CELLS))  # count, sum, sum of squares
        self.seen = 0
        self.last = 0.5  # used until the first valid threshold

    def __call__(self, scores: NDArray[np.float64], learn: bool = True) -> NDArray[np.float64]:
        """The thresholds (T,) for the next T noise scores (T,), which enter the queue."""
        settings = self.settings
        if settings.fixed is not None or not learn:
            return np.full(len(scores), self.latest)
        assert self.seen % self.batch_size == 0, "a piece ended within a batch"
        thresholds = np.empty(len(scores))
        unweighted = settings.criterion == "unweighted"
        queue = self.ring, self.cells, self.seen, self.batch_size, self.scale
        _slide(thresholds, np.ascontiguousarray(scores), *queue, unweighted)
        self.seen += len(scores)
        return self._fill_undefined(thresholds)

    @property
    def latest(self) -> float:
        """The threshold of the last item; 0.5 before the first one."""
        settings = self.settings
        if settings.fixed is None:
            return self.last
        on_noise = settings.fixed_on == "noise-score"  # or the ID score, Eq. 1: clean iff S >= λ
        return settings.fixed if on_noise else 1 - settings.fixed

    @property
    def queue(self) -> Floats:
        """The scores from which the last threshold was found, in any order."""
        return self.ring[: self.seen]

    def _fill_undefined(self, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Replace the thresholds of queues without a split by the last valid one, or by zero."""
        undefined = thresholds == UNDEFINED
        if self.settings.degenerate == "zero":
            thresholds[undefined] = 0.0
        else:
            latest = np.maximum.accumulate(np.where(undefined, -1, np.arange(len(thresholds))))
            thresholds = np.where(latest >= 0, thresholds[latest], self.last)
        if len(thresholds):
            self.last = float(thresholds[-1])
        return thresholds


@compiled
def _slide(thresholds, scores, ring, cells, seen, batch_size, scale, unweighted):  # type: ignore[no-untyped-def]
    """Push scores through the queue in batches; write thresholds, or UNDEFINED if there is none."""
    count, total, square = cells[0], cells[1], cells[2]
    n, s, q = count.sum(), total.sum(), square.sum()
    start = 0
    while start < len(scores):
        stop = min(start + batch_size, len(scores))
        for i in range(start, stop):
            slot = (seen + i) % len(ring)
            if seen + i >= len(ring):
                first, second = _move(ring[slot], -1.0, count, total, square, scale)
                n, s, q = n - 1, s + first, q + second
            ring[slot] = scores[i]
            first, second = _move(ring[slot], 1.0, count, total, square, scale)
            n, s, q = n + 1, s + first, q + second
        thresholds[start:stop] = _best_split(count, total, square, n, s, q, unweighted)
        start = stop


def _move(
    score: float, sign: float, count: Floats, total: Floats, square: Floats, scale: float
) -> tuple[float, float]:
    """Add (sign 1) or remove (-1) a score in its cell; return the changes of sum and squares.

    The cell is the number of grid values that are not above the score.
    """
    cell = min(max(int(score * len(GRID)), 0), len(GRID))  # never above it, and at most two below
    while cell < len(GRID) and GRID[cell] <= score:
        cell += 1
    first = sign * np.rint(score * scale) / scale
    second = sign * np.rint(score * score * scale) / scale
    count[cell] += sign
    total[cell] += first
    square[cell] += second
    return first, second


def _best_split(
    count: Floats, total: Floats, square: Floats, n: float, s: float, q: float, unweighted: bool
) -> float:
    """The first grid value of the smallest criterion, or UNDEFINED if no split has two sides."""
    n0 = s0 = q0 = 0.0
    best, threshold = np.inf, UNDEFINED
    for k in range(len(GRID)):
        if count[k] == 0:
            continue  # the same split as the grid value before
        n0 += count[k]
        s0 += total[k]
        q0 += square[k]
        n1, s1 = n - n0, s - s0
        if n1 == 0:
            break
        if unweighted:
            criterion = q0 / n0 - (s0 / n0) ** 2 + (q - q0) / n1 - (s1 / n1) ** 2
        else:
            criterion = -(s0 * s0 / n0 + s1 * s1 / n1)
        if criterion < best:
            best, threshold = criterion, GRID[k]
    return threshold


def is_surely_noise(u: Floats, threshold: Floats, gap: float) -> NDArray[np.bool_]:
    """Whether a score is high enough to learn from as noise: u > θ + g (1 - θ), g in [0, 1].

    This is the gap rule of two released codes: AdaNeg's (arXiv 2410.20149) and TANL's (arXiv
    2603.25250).
    """
    return np.asarray(u > threshold + gap * (1 - threshold))


def is_surely_id(u: Floats, threshold: Floats, gap: float) -> NDArray[np.bool_]:
    """Whether a score is low enough to learn from as ID: u < θ - g θ."""
    return np.asarray(u < threshold - gap * threshold)
