"""Step 8 of `ridge`: whether a stream comes in order, and what its last classes then say.

Neighbours share a predicted class more often than chance where a person photographs one kind after
another. There the classes of the last items are a prior for the next one's, over windows of several
lengths; how far each is mixed in is fitted to how well it foretold the stream, without labels. On
a shuffled stream nothing is mixed in, and classes are those of step 7 to the bit. An item's class
depends on items before it and on itself, so it comes without delay, unlike those of LAME
("Parameter-free Online Test-time Adaptation", arXiv 2201.05718) and StatA ("Realistic Test-Time
Adaptation of Vision-Language Models", arXiv 2501.03729), which name those of a whole block.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.kernels.compiled import compiled
from zsntta_cli.methods.classifiers.blocks import to_softmax
from zsntta_cli.methods.detectors.ridge.items import Floats
from zsntta_cli.methods.state import State

Classes = NDArray[np.int32]

KEEPS = np.array([0.5, 0.9, 0.98])  # of the three windows: 2, 10 and 50 items
_SURE, _FULL = 4.0, 6.0  # standard errors at which the last classes come in, and count in full
_LEAST_ITEMS = 8  # that a test of order needs
_NO_ORDER = 20.0  # items' worth of weight for no window
_STEPS = 20  # of expectation maximisation


@dataclass(frozen=True)
class LastClasses:
    """The classes of the last items called clean, and what is made of them."""

    shares: Floats  # (3, C) of the classes in each window: each sums to 1
    weights: Floats  # (3,) of the windows in the prior; the rest is 1 / C for each class

    @classmethod
    def none(cls, classes: int) -> "LastClasses":
        """Before the first item."""
        windows = len(KEEPS)
        return cls(np.full((windows, classes), 1 / classes), np.zeros(windows))

    def copied(self) -> "LastClasses":
        """The same, unchanged by what comes."""
        return LastClasses(self.shares.copy(), self.weights)

    def name(
        self, logits: NDArray[np.floating], classes: Classes, is_kept: NDArray[np.bool_]
    ) -> tuple[Classes, Floats]:
        """Name the classes of B items, one after another, and put those that are kept in.

        `logits` (B, K) are those of `classes`, less the penalties of step 7. Beside the classes
        (B,) stands how much likelier than 1 / C each window made the items, (B, 3).
        """
        named, gains = np.empty(len(logits), np.int32), np.empty((len(logits), len(KEEPS)))
        values = np.array(logits, np.float64, order="C")
        shown = np.ascontiguousarray(classes), np.ascontiguousarray(is_kept)
        _follow(named, gains, values, *shown, self.shares, self.weights)
        return named, gains


class Order:
    """What `ridge` keeps of the order of a stream: windows, and the last M items called clean."""

    def __init__(self, classes: int, size: int) -> None:
        self.last = LastClasses.none(classes)
        self._seen = 0
        self._classes = np.zeros(size, np.int32)  # that the frozen model names
        self._gains = np.zeros((size, len(KEEPS)))

    def name(
        self, logits: NDArray[np.floating], classes: Classes, is_kept: NDArray[np.bool_]
    ) -> Classes:
        """Name the classes of up to M items in a row and remember those that are kept."""
        named, gains = self.last.name(logits, classes, is_kept)
        slots = (self._seen + np.arange(int(is_kept.sum()))) % len(self._classes)
        self._classes[slots], self._gains[slots] = classes[is_kept, 0], gains[is_kept]
        self._seen += len(slots)
        return named

    def learn(self) -> None:
        """Test the last M items for order, and weigh the windows."""
        count, first = min(self._seen, len(self._classes)), self._seen % len(self._classes)
        classes = self._classes[:count] if count == self._seen else np.roll(self._classes, -first)
        trust = min(max((deviations_in_order(classes) - _SURE) / (_FULL - _SURE), 0.0), 1.0)
        weights = trust * window_weights(self._gains[:count]) if trust else np.zeros(len(KEEPS))
        self.last = LastClasses(self.last.shares, weights)

    def state(self) -> State:
        """The windows and the items."""
        own: State = {"seen": self._seen, "classes": self._classes, "gains": self._gains}
        return {**own, **vars(self.last)}

    def restore(self, state: State) -> None:
        """Go on from a state that was checked to be like this one's."""
        self._seen = int(state["seen"])
        self._classes, self._gains = np.asarray(state["classes"]), np.asarray(state["gains"])
        self.last = LastClasses(np.asarray(state["shares"]), np.asarray(state["weights"]))


def deviations_in_order(classes: NDArray[np.integer]) -> float:
    """Standard errors by which neighbours of n items share a class more often than if shuffled.

    Moments of the number of joins are exact over all permutations; square roots (Freeman and Tukey)
    make their distribution even where few are expected. 0 where no order can show.
    """
    n = len(classes)
    joins = float((classes[1:] == classes[:-1]).sum())
    mean, variance = moments_of_joins(classes) if n >= _LEAST_ITEMS else (0.0, 0.0)
    if variance <= 1e-9 * n:
        return 0.0
    excess = np.sqrt(joins) + np.sqrt(joins + 1) - np.sqrt(4 * mean + 1)
    return float(excess * np.sqrt(mean / variance))


def moments_of_joins(classes: NDArray[np.integer]) -> tuple[float, float]:
    """Mean and variance, over all orders of n > 3 items, of the neighbours that share a class."""
    n, k = len(classes), np.bincount(classes).astype(np.float64)
    pairs, triples = float((k * (k - 1)).sum()), float((k * (k - 1) * (k - 2)).sum())
    mean = pairs / n
    beside = 2 * triples / (n * (n - 1))  # two joins of three items in a row
    apart = (pairs * (pairs - 2) - 4 * triples) / (n * (n - 1))  # of two pairs without a common one
    return mean, mean + beside + apart - mean * mean


def window_weights(gains: Floats) -> Floats:
    """Weights (3,) of the windows under which the items (n, 3) were likeliest, by EM."""
    likelihood = np.column_stack([np.ones(len(gains)), gains])
    none = np.array([_NO_ORDER, *np.zeros(len(KEEPS))])
    weights = np.full(1 + len(KEEPS), 1 / (1 + len(KEEPS)))
    for _ in range(_STEPS):
        counts = weights * ((1 / (likelihood @ weights)) @ likelihood) + none
        weights = counts / counts.sum()
    return weights[1:]


@compiled
def _follow(named, gains, values, classes, is_kept, shares, weights):  # type: ignore[no-untyped-def]
    """Name items one by one; `values` are logits, and probabilities in the end."""
    windows, count = shares.shape
    none = 1.0
    for m in range(windows):
        none -= weights[m]
    for t in range(len(values)):
        best = -np.inf
        for k in range(values.shape[1]):
            prior = none
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
