"""Step 8 of `ridge`: tests whether a stream is ordered, and then uses its last classes.

If a person photographs one kind after another, neighbours share a predicted class more often than
by chance. The classes of the last items are then a prior for the next one, over windows of several
lengths, whose weights are fitted to how well each predicted the stream, without labels. On a
shuffled stream all weights are 0, and classes are those of step 7 to the bit. An item's class
depends on itself and on earlier items, so it comes without delay, unlike in LAME ("Parameter-free
Online Test-time Adaptation", arXiv 2201.05718) and StatA ("Realistic Test-Time Adaptation of
Vision-Language Models", arXiv 2501.03729), which classify whole blocks.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.kernels.compiled import compiled
from zsntta_cli.methods.classifiers.blocks import to_softmax
from zsntta_cli.methods.detectors.ridge.items import Floats
from zsntta_cli.methods.state import State

Classes = NDArray[np.int32]

KEEPS = np.array([0.5, 0.9, 0.98])  # decay of the three windows: 2, 10 and 50 items
_SURE, _FULL = 4.0, 6.0  # standard errors at which the last classes start to count, and in full
_LEAST_ITEMS = 8  # fewest items for a test of order
_NO_ORDER = 20.0  # pseudo-count of items for no window
_STEPS = 20  # steps of expectation maximisation


@dataclass(frozen=True)
class LastClasses:
    """The classes of the last items that were called clean, and their weights."""

    shares: Floats  # (3, C) of the classes in each window: each sums to 1
    weights: Floats  # (3,) of the windows in the prior; the rest is 1 / C for each class

    @classmethod
    def none(cls, classes: int) -> "LastClasses":
        """The windows before the first item."""
        windows = len(KEEPS)
        return cls(np.full((windows, classes), 1 / classes), np.zeros(windows))

    def copied(self) -> "LastClasses":
        """A copy, which later items do not change."""
        return LastClasses(self.shares.copy(), self.weights)

    def name(
        self, logits: NDArray[np.floating], classes: Classes, is_kept: NDArray[np.bool_]
    ) -> tuple[Classes, Floats]:
        """Choose the classes of B items in turn, and add those that are `is_kept` to the windows.

        `logits` (B, K) are those of `classes`, minus the penalties of step 7. It returns classes
        (B,) and gains (B, 3): how much likelier than 1 / C each window made the items.
        """
        named, gains = np.empty(len(logits), np.int32), np.empty((len(logits), len(KEEPS)))
        values = np.array(logits, np.float64, order="C")
        arrays = np.ascontiguousarray(classes), np.ascontiguousarray(is_kept)
        _follow(named, gains, values, *arrays, self.shares, self.weights)
        return named, gains


class Order:
    """The order of a stream: the windows, and the last M items that were called clean."""

    def __init__(self, classes: int, size: int) -> None:
        self.last = LastClasses.none(classes)
        self._seen = 0
        self._classes = np.zeros(size, np.int32)  # as the frozen model predicts them
        self._gains = np.zeros((size, len(KEEPS)))

    def name(
        self, logits: NDArray[np.floating], classes: Classes, is_kept: NDArray[np.bool_]
    ) -> Classes:
        """Choose the classes of up to M consecutive items, and remember those that are kept."""
        named, gains = self.last.name(logits, classes, is_kept)
        slots = (self._seen + np.arange(int(is_kept.sum()))) % len(self._classes)
        self._classes[slots], self._gains[slots] = classes[is_kept, 0], gains[is_kept]
        self._seen += len(slots)
        return named

    def learn(self) -> None:
        """Test the last M items for order, and weight the windows."""
        count, first = min(self._seen, len(self._classes)), self._seen % len(self._classes)
        classes = self._classes[:count] if count == self._seen else np.roll(self._classes, -first)
        trust = min(max((deviations_in_order(classes) - _SURE) / (_FULL - _SURE), 0.0), 1.0)
        weights = trust * window_weights(self._gains[:count]) if trust else np.zeros(len(KEEPS))
        self.last = LastClasses(self.last.shares, weights)

    def state(self) -> State:
        """The windows and the items."""
        items: State = {"seen": self._seen, "classes": self._classes, "gains": self._gains}
        return {**items, **vars(self.last)}

    def restore(self, state: State) -> None:
        """Continue from a state that was checked against this one's."""
        self._seen = int(state["seen"])
        self._classes, self._gains = np.asarray(state["classes"]), np.asarray(state["gains"])
        self.last = LastClasses(np.asarray(state["shares"]), np.asarray(state["weights"]))


def deviations_in_order(classes: NDArray[np.integer]) -> float:
    """The standard errors by which neighbours of n items share a class more often than by chance.

    The moments of the number of such pairs are exact over all permutations. Square roots (Freeman
    and Tukey) make it symmetric even if few are expected. It is 0 if order cannot be tested.
    """
    n = len(classes)
    joins = float((classes[1:] == classes[:-1]).sum())
    mean, variance = moments_of_joins(classes) if n >= _LEAST_ITEMS else (0.0, 0.0)
    if variance <= 1e-9 * n:
        return 0.0
    excess = np.sqrt(joins) + np.sqrt(joins + 1) - np.sqrt(4 * mean + 1)
    return float(excess * np.sqrt(mean / variance))


def moments_of_joins(classes: NDArray[np.integer]) -> tuple[float, float]:
    """The mean and variance, over all orders of n > 3 items, of neighbours that share a class."""
    n, k = len(classes), np.bincount(classes).astype(np.float64)
    pairs, triples = float((k * (k - 1)).sum()), float((k * (k - 1) * (k - 2)).sum())
    mean = pairs / n
    beside = 2 * triples / (n * (n - 1))  # two joins among three items in a row
    apart = (pairs * (pairs - 2) - 4 * triples) / (n * (n - 1))  # joins of two separate pairs
    return mean, mean + beside + apart - mean * mean


def window_weights(gains: Floats) -> Floats:
    """The weights (3,) of the windows that make the items (n, 3) likeliest, by EM."""
    likelihood = np.column_stack([np.ones(len(gains)), gains])
    none = np.array([_NO_ORDER, *np.zeros(len(KEEPS))])
    weights = np.full(1 + len(KEEPS), 1 / (1 + len(KEEPS)))
    for _ in range(_STEPS):
        counts = weights * ((1 / (likelihood @ weights)) @ likelihood) + none
        weights = counts / counts.sum()
    return weights[1:]


@compiled
def _follow(named, gains, values, classes, is_kept, shares, weights):  # type: ignore[no-untyped-def]
    """Choose the classes of items in turn; `values` are logits, which become probabilities."""
    windows, count = shares.shape
    rest = 1.0
    for m in range(windows):
        rest -= weights[m]
    for t in range(len(values)):
        best = -np.inf
        for k in range(values.shape[1]):
            prior = rest
            for m in range(windows):
                prior += weights[m] * shares[m, classes[t, k]] * count
            value = values[t, k] + np.log(prior)
            if value > best:
                best, named[t] = value, classes[t, k]
        to_softmax(values[t])
        for m in range(windows):
            gains[t, m] = 0.0
            for k in range(values.shape[1]):
                gains[t, m] += values[t, k] * shares[m, classes[t, k]] * count
        if is_kept[t]:
            for m in range(windows):
                for c in range(count):
                    shares[m, c] *= KEEPS[m]
                for k in range(values.shape[1]):
                    shares[m, classes[t, k]] += (1 - KEEPS[m]) * values[t, k]
