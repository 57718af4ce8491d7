"""Which words images activate: TANL and DDE count on those that noise activates more than ID does.

An image's activation of a word is the word's part of the softmax over names and words.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Floats = NDArray[np.float64]


def activations(logits: Array, classes: int, copies: int = 1) -> Array:
    """The activations (B, M) by logits (B, C + M), with so many copies of each word."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    names, words = powers[:, :classes], powers[:, classes:]
    return np.asarray(words / (names.sum(axis=1) + copies * words.sum(axis=1))[:, None])


class Recent:
    """The activations (M,) by the last L images of one kind, and their mean, zero at first."""

    def __init__(self, most: int, words: int) -> None:
        self.rows = np.zeros((most, words), np.float32)
        self.sum, self.seen = np.zeros(words), 0

    def add(self, shown: Array) -> None:
        """Add the activations (B, M) by some images, each in the place of the oldest."""
        for activation in shown:
            place = self.seen % len(self.rows)
            self.sum -= self.rows[place]  # zeros, while there is room
            self.sum += activation
            self.rows[place] = activation
            self.seen += 1

    @property
    def mean(self) -> Floats:
        """The mean activation (M,)."""
        return self.sum / max(1, min(self.seen, len(self.rows)))


def largest(values: Floats, count: int) -> NDArray[np.intp]:
    """The places of the `count` largest values (M,), descending."""
    places = np.argpartition(-values, count - 1)[:count]
    return places[np.argsort(-values[places], kind="stable")]
