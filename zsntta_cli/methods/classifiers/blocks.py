"""Items a block at a time: what the frozen model says of them, and rows that they move.

A recursion in which each item moves unit rows w_c (proxies, means of classes) by its own feature v
needs no row before the block's end: with w_c = s_c (w_c⁰ + Σ_j a_jc v_j), cosines are those with
the rows of the block's start and those among its items, two products.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.scores import softmax, unit

Floats = NDArray[np.float64]
# Of a precision matrix Λ: rows (N, D) to rows w(x) (N, D) with w(x)·w(y) = xᵀ Λ y, without Λ itself
Whitening = Callable[[Floats], Floats]

BLOCK = 64  # items a product at a time: bounds memory, changes no decision


@dataclass(frozen=True)
class Frozen:
    """What the frozen model says of B items."""

    features: Floats  # (B, D) unit norm
    logits: Floats  # (B, C)

    @classmethod
    def of(cls, data: StreamData, part: slice) -> "Frozen":
        """Ask it about a run of the stream's items."""
        raw = data.features(part)
        return cls(unit(raw).astype(np.float64), data.logits(part, raw).astype(np.float64))

    @property
    def probability(self) -> Floats:
        """Softmax (B, C) of the logits."""
        return softmax(self.logits)


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


def leaving(
    row: NDArray[np.intp], item: NDArray[np.intp], rows: int, end: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The item from which the key of each row, and that of each item that entered, is no more.

    `end` where it stays.
    """
    left, replaced = np.full(rows, end, np.intp), np.full(len(row), end, np.intp)
    latest: dict[int, int] = {}
    for key, (r, i) in enumerate(zip(row.tolist(), item.tolist(), strict=True)):
        if r in latest:
            replaced[latest[r]] = i
        else:
            left[r] = i
        latest[r] = key
    return left, replaced


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


def whitening_by(factor: float) -> Whitening:
    """The whitening of Λ = factor² I."""
    return lambda rows: factor * rows


def whitening_of_inverse(covariance: Floats) -> Whitening:
    """The whitening of the inverse of a positive definite matrix (D, D), else LinAlgError."""
    lower = cholesky(covariance, lower=True, check_finite=False)

    def whitened(rows: Floats) -> Floats:
        solved = solve_triangular(lower, rows.T, lower=True, check_finite=False)
        return np.ascontiguousarray(solved.T)

    return whitened


def whitening_of_pseudo_inverse(covariance: Floats) -> Whitening:
    """The whitening of the pseudo-inverse of a positive semi-definite matrix (D, D)."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    roots = np.zeros_like(values)
    roots[kept] = 1 / np.sqrt(values[kept])
    return lambda rows: np.asarray(rows @ (vectors * roots))
