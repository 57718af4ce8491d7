"""Whether a stream comes in order of its classes, and what follows for the class of the next item.

If a person photographs one kind after another, neighbours share a predicted class more often than
by chance. Then the last classes are a prior for the next one, over three windows, with the weights
that make the stream likeliest. In a shuffled stream all weights are 0.
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.scores import softmax

Floats = NDArray[np.float64]
Classes = NDArray[np.int32]
_KEEPS = np.array([0.5, 0.9, 0.98])  # of a window's shares from item to item: 2, 10, 50 items
_BLOCK = 32  # items whose shares are found together, which takes a few microseconds for each
_POWERS = _KEEPS[:, None] ** np.arange(_BLOCK + 1)  # (3, B + 1) of each window, after so many items


class Order:
    """The shares of the last classes, and the last M items that were called clean."""

    def __init__(self, classes: int, size: int) -> None:
        self.weights, self.shares, self.seen = np.zeros(3), np.full((3, classes), 1 / classes), 0
        self.classes, self.gains = np.zeros(size, np.int32), np.zeros((size, 3))

    def name(self, logits: Floats, classes: Classes, is_kept: NDArray[np.bool_]) -> Classes:
        """Choose the classes of B items in turn, of `classes` (B, K); those that are kept count."""
        blocks = [slice(i, i + _BLOCK) for i in range(0, len(logits), _BLOCK)]
        parts = [self._follow(logits[b], classes[b], is_kept[b]) for b in blocks]
        named = np.concatenate([np.empty(0, np.int32), *(part for part, _ in parts)])
        gains = np.concatenate([np.empty((0, 3)), *(gain for _, gain in parts)])
        slots = (self.seen + np.arange(int(is_kept.sum()))) % len(self.classes)
        self.classes[slots], self.gains[slots] = classes[is_kept, 0], gains[is_kept]
        self.seen += len(slots)
        return named

    def _follow(
        self, logits: Floats, classes: Classes, is_kept: NDArray[np.bool_]
    ) -> tuple[Classes, Floats]:
        """The classes (B,) of items, and how much likelier than 1 / C each window makes them."""
        p = softmax(logits)  # (B, K)
        before: NDArray[np.intp] = np.cumsum(is_kept) - is_kept  # kept items before each
        gap = before[:, None] - before - 1  # kept items between two; negative in the other order
        decay = (1 - _KEEPS)[:, None, None] * _POWERS[:, np.maximum(gap, 0)]  # (3, B, B)
        decay *= is_kept & (gap >= 0)
        mass = np.zeros((*classes.shape, len(classes)))  # (B, K, B) of each class
        for one, likely in zip(classes.T, p.T, strict=True):  # a sum over a last axis of K is slow
            mass += (classes[..., None] == one) * likely
        shares = _POWERS[:, before, None] * self.shares[:, classes]  # (3, B, K)
        shares += (mass @ decay[..., None])[..., 0]
        gain = shares * self.shares.shape[1]
        prior = 1 + np.tensordot(self.weights, gain - 1, axes=1)
        best = (logits + np.log(prior)).argmax(axis=1)
        self._keep(p[is_kept], classes[is_kept])
        return classes[np.arange(len(classes)), best], (p * gain).sum(axis=2).T

    def _keep(self, p: Floats, classes: Classes) -> None:
        """Move the shares by kept items of probabilities (N, K) for classes (N, K), in turn."""
        left = np.arange(len(p))[::-1]  # kept items after each
        steps = (1 - _KEEPS[:, None]) * _KEEPS[:, None] ** left  # (3, N)
        # Tiny numbers would be slow.
        self.shares = self.shares * _KEEPS[:, None] ** len(p) + 1e-30
        for shares, step in zip(self.shares, steps, strict=True):
            np.add.at(shares, classes, step[:, None] * p)

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
