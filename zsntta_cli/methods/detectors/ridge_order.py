"""Whether a stream comes in order of its classes, and what follows for the class of the next item.

If a person photographs one kind after another, neighbours share a predicted class more often than
by chance. Then the last classes are a prior for the next one, over three windows, with the weights
that make the stream likeliest. In a shuffled stream all weights are 0.
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.classifiers.blocks import to_softmax
from zsntta_cli.methods.kernels.compiled import compiled

Floats = NDArray[np.float64]
Classes = NDArray[np.int32]
_KEEPS = np.array([0.5, 0.9, 0.98])  # of a window's shares from item to item: 2, 10, 50 items


class Order:
    """The shares of the last classes, and the last M items that were called clean."""

    def __init__(self, classes: int, size: int) -> None:
        self.weights, self.shares, self.seen = np.zeros(3), np.full((3, classes), 1 / classes), 0
        self.classes, self.gains = np.zeros(size, np.int32), np.zeros((size, 3))

    def name(self, logits: Floats, classes: Classes, is_kept: NDArray[np.bool_]) -> Classes:
        """Choose the classes of B items in turn, of `classes` (B, K); those that are kept count."""
        named, gains = np.empty(len(logits), np.int32), np.zeros((len(logits), 3))
        items = np.ascontiguousarray(classes), np.ascontiguousarray(is_kept)
        _follow(named, gains, np.array(logits, order="C"), *items, self.shares, self.weights)
        slots = (self.seen + np.arange(int(is_kept.sum()))) % len(self.classes)
        self.classes[slots], self.gains[slots] = classes[is_kept, 0], gains[is_kept]
        self.seen += len(slots)
        return named

    def learn(self) -> None:
        """Test the last M items for order, from 4 to 6 standard errors, and find the weights."""
        count, first = min(self.seen, len(self.classes)), self.seen % len(self.classes)
        classes = self.classes[:count] if count == self.seen else np.roll(self.classes, -first)
        trust = min(max(errors_in_order(classes) / 2 - 2, 0.0), 1.0)
        likelihood = np.column_stack([np.ones(count), self.gains[:count]])
        weights = np.full(4, 0.25)
        for _ in range(20 if trust else 0):  # expectation maximisation; 20 items speak for none
            weights = weights * ((1 / (likelihood @ weights)) @ likelihood) + [20, 0, 0, 0]
            weights /= weights.sum()
        self.weights = trust * weights[1:]


def errors_in_order(classes: NDArray[np.integer]) -> float:
    """The standard errors by which neighbours of n items share a class more often than by chance.

    Roots (Freeman and Tukey) serve if few are expected; with few classes the error is smaller.
    """
    joins, sizes = float((classes[1:] == classes[:-1]).sum()), np.bincount(classes)
    expected = float((sizes * (sizes - 1.0)).sum()) / max(len(classes), 1)
    return float(np.sqrt(joins) + np.sqrt(joins + 1) - np.sqrt(4 * expected + 1))


@compiled
def _follow(named, gains, values, classes, is_kept, shares, weights):  # type: ignore[no-untyped-def]
    """Choose the classes of items; a gain is how much likelier than 1 / C a window makes one."""
    for t in range(len(values)):
        best = -np.inf
        for k in range(values.shape[1]):
            prior = 1.0
            for m in range(3):
                prior += weights[m] * (shares[m, classes[t, k]] * shares.shape[1] - 1)
            if values[t, k] + np.log(prior) > best:
                best, named[t] = values[t, k] + np.log(prior), classes[t, k]
        to_softmax(values[t])
        for m in range(3):
            for k in range(values.shape[1]):
                gains[t, m] += values[t, k] * shares[m, classes[t, k]] * shares.shape[1]
            for c in range(shares.shape[1] if is_kept[t] else 0):
                shares[m, c] = _KEEPS[m] * shares[m, c] + 1e-30  # tiny numbers would be slow
            for k in range(values.shape[1] if is_kept[t] else 0):
                shares[m, classes[t, k]] += (1 - _KEEPS[m]) * values[t, k]
