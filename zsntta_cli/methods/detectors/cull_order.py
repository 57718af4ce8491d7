"""Whether a stream comes in order of its classes, and what follows for the class of the next item.

If a person photographs one kind after another, neighbours share a predicted class more often than
by chance. Then the last classes are a prior for the next one, over three windows, with the weights
that make the stream likeliest. In a shuffled stream all weights are 0, and nothing is followed.
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.scores import TOP, Floats, Mask, softmax

Classes = NDArray[np.int32]
_KEEPS = np.array([[0.5], [0.9], [0.98]])  # of a window's shares from item to item: 2, 10, 50 items
_BEFORE = 512  # items before the last M, from which on shares are followed: 0.98 ** 512 is 3e-5


class Order:
    """The last items that were called clean."""

    def __init__(self, classes: int, size: int) -> None:
        """Start a stream of C classes; order is looked for in the last M items, the `size`."""
        self.size, self.weights = size, np.zeros(3)
        self.shares = np.full((3, classes), 1 / classes)  # of the classes in each window
        # Of the last M items and those before them: K classes, and the softmax of their logits.
        self.classes = np.empty((0, min(TOP, classes)), np.int32)
        self.likely = np.empty(self.classes.shape)

    def name(self, logits: Floats, classes: Classes, is_kept: Mask) -> Classes:
        """Choose the classes of B items in turn, of `classes` (B, K); those that are kept count."""
        if self.weights.any():
            gain = self._follow(softmax(logits), classes, is_kept)
            logits = logits + np.log(1 + np.tensordot(gain - 1, self.weights, axes=(1, 0)))
        return classes[np.arange(len(classes)), logits.argmax(axis=1)]

    def learn(self, logits: Floats, classes: Classes) -> None:
        """Look for order in the last M items, from 4 to 6 standard errors, and find the weights.

        The items since the last time have the largest logits (N, K), of `classes` (N, K).
        """
        last, self.weights = self.size + _BEFORE, np.zeros(3)
        self.classes = np.concatenate([self.classes, classes])[-last:]
        self.likely = np.concatenate([self.likely, softmax(logits)])[-last:]
        trust = min(max(errors_in_order(self.classes[-self.size :, 0]) / 2 - 2, 0.0), 1.0)
        if not trust:
            return
        self.shares = np.full_like(self.shares, 1 / self.shares.shape[1])
        gain = self._follow(self.likely, self.classes, np.ones(last, bool))
        # How much likelier than 1 / C the prior, and each window, made the last M items.
        gains = (gain * self.likely[:, None]).sum(axis=2)[-self.size :]
        likelihood, weights = np.column_stack([np.ones(len(gains)), gains]), np.full(4, 0.25)
        for _ in range(20):  # expectation maximisation; 20 items speak for none
            weights = weights * ((1 / (likelihood @ weights)) @ likelihood) + [20, 0, 0, 0]
            weights /= weights.sum()
        self.weights = trust * weights[1:]

    def _follow(self, likely: Floats, classes: Classes, is_kept: Mask) -> Floats:
        """How much likelier than 1 / C the windows make K classes of B items (B, 3, K).

        Each item that is kept moves the shares, by its probabilities (B, K) of `classes` (B, K).
        """
        shares, gain = self.shares.copy(), np.empty((len(classes), 3, classes.shape[1]))
        for i, (few, p) in enumerate(zip(classes, likely, strict=True)):
            gain[i] = shares[:, few]
            if is_kept[i]:
                shares *= _KEEPS
                shares += 1e-30  # tiny numbers would be slow
                shares[:, few] += (1 - _KEEPS) * p
        self.shares = shares
        return gain * shares.shape[1]


def errors_in_order(classes: Classes) -> float:
    """The standard errors by which neighbours of n items share a class more often than by chance.

    Roots (Freeman and Tukey) serve if few are expected; with few classes the error is smaller.
    """
    joins, sizes = float((classes[1:] == classes[:-1]).sum()), np.bincount(classes)
    expected = float((sizes * (sizes - 1.0)).sum()) / max(len(classes), 1)
    return float(np.sqrt(joins) + np.sqrt(joins + 1) - np.sqrt(4 * expected + 1))
