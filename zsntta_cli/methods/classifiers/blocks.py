"""Items a block at a time: what the frozen model says of them, and rows that they move.

A recursion in which each item moves unit rows w_c (proxies, means of classes) by its own feature v
needs no row before the block's end: with w_c = s_c (w_c⁰ + Σ_j a_jc v_j), cosines are those with
the rows of the block's start and those among its items, two products.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.scores import unit

Floats = NDArray[np.float64]

BLOCK = 64  # items a product at a time: bounds memory, changes no decision


@dataclass(frozen=True)
class Frozen:
    """What the frozen model says of B items."""

    features: Floats  # (B, D) unit norm
    logits: Floats  # (B, C)

    @classmethod
    def of(cls, data: StreamData, part: slice) -> "Frozen":
        """That of a run of the stream's items."""
        raw = data.features(part)
        return cls(unit(raw).astype(np.float64), data.logits(part, raw).astype(np.float64))

    @property
    def probability(self) -> Floats:
        """Softmax (B, C) of the logits."""
        powers = np.exp(self.logits - self.logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def blocks(total: int, size: int = BLOCK) -> Iterator[slice]:
    """Runs of at most `size` of a stream's items, in order."""
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def cut(cuts: NDArray[np.integer], total: int, size: int) -> Iterator[tuple[slice, bool]]:
    """Runs that end at every cut, and whether one begins there; none of more than `size` items."""
    bounds = [0, *(int(c) for c in cuts if 0 < c < total), total]
    at = {int(c) for c in cuts}
    for start, stop in itertools.pairwise(bounds):
        for first in range(start, stop, size):
            yield slice(first, min(first + size, stop)), first in at


def moved(rows: Floats, steps: Floats, features: Floats) -> Floats:
    """Unit rows (C, D) after the steps (B, C) of a block's features (B, D), unit again."""
    return np.asarray(unit(rows + steps.T @ features))


def largest(row: Floats) -> float:
    """The largest value (of none: minus infinity), within kernels."""
    value = -np.inf
    for c in range(len(row)):
        value = max(value, row[c])
    return value


def to_softmax(row: Floats) -> None:
    """Logits (C,) to probabilities in place, within kernels."""
    highest, total = largest(row), 0.0
    for c in range(len(row)):
        row[c] = np.exp(row[c] - highest)
        total += row[c]
    for c in range(len(row)):
        row[c] /= total


def entropy_of(probability: NDArray[Any]) -> NDArray[Any]:
    """Entropy (B,) in nats of probabilities (B, C)."""
    return np.asarray(-(probability * np.log(np.maximum(probability, 1e-30))).sum(axis=1))
