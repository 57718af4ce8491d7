"""Blocks of items: the frozen model's answers for them, and the rows that they move.

In some classifiers each item moves unit rows w_c (proxies or means of classes) by its own feature
v. The rows need not be computed before the block ends: with w_c = s_c (w_c⁰ + Σ_j a_jc v_j), all
cosines follow from two products, with the rows at the block's start and between its items.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.scores import softmax, unit

Floats = NDArray[np.float64]
_BY_FACTOR, _BY_INVERSE, _BY_PSEUDO_INVERSE = "factor", "inverse", "pseudo-inverse"

BLOCK = 64  # items in one product: it limits memory and changes no decision


@dataclass(frozen=True)
class Frozen:
    """The features of B items and the frozen model's logits."""

    features: Floats  # (B, D) unit norm
    logits: Floats  # (B, C)

    @classmethod
    def of(cls, data: StreamData, part: slice) -> "Frozen":
        """Compute them for consecutive items of the stream."""
        raw = data.features(part)
        return cls(unit(raw).astype(np.float64), data.logits(part, raw).astype(np.float64))

    @property
    def probability(self) -> Floats:
        """The softmax (B, C) of the logits."""
        return softmax(self.logits)


def blocks(total: int, size: int = BLOCK) -> Iterator[slice]:
    """Cut the items of a stream into consecutive blocks of at most `size`."""
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def cut(cuts: NDArray[np.integer], total: int, size: int) -> Iterator[tuple[slice, bool]]:
    """Blocks of at most `size` items that end at every cut, and whether each begins at one."""
    bounds = [0, *(int(c) for c in cuts if 0 < c < total), total]
    cut_items = {int(c) for c in cuts}
    for start, stop in itertools.pairwise(bounds):
        for first in range(start, stop, size):
            yield slice(first, min(first + size, stop)), first in cut_items


def leaving(
    row: NDArray[np.intp], item: NDArray[np.intp], rows: int, end: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The item at which the old key of each row, and each key that entered, is replaced.

    It is `end` for a key that stays.
    """
    row_until, key_until = np.full(rows, end, np.intp), np.full(len(row), end, np.intp)
    latest: dict[int, int] = {}
    for key, (r, i) in enumerate(zip(row.tolist(), item.tolist(), strict=True)):
        if r in latest:
            key_until[latest[r]] = i
        else:
            row_until[r] = i
        latest[r] = key
    return row_until, key_until


def moved(rows: Floats, steps: Floats, features: Floats) -> Floats:
    """Move unit rows (C, D) by the steps (B, C) along a block's features (B, D); keep them unit."""
    return np.asarray(unit(rows + steps.T @ features))


def largest(row: Floats) -> float:
    """The largest value, or minus infinity if there are none; kernels call it."""
    value = -np.inf
    for c in range(len(row)):
        value = max(value, row[c])
    return value


def to_softmax(row: Floats) -> None:
    """Turn logits (C,) into probabilities in place; kernels call it."""
    highest, total = largest(row), 0.0
    for c in range(len(row)):
        row[c] = np.exp(row[c] - highest)
        total += row[c]
    for c in range(len(row)):
        row[c] /= total


def entropy_of(probability: NDArray[Any]) -> NDArray[Any]:
    """The entropies (B,) in nats of probabilities (B, C)."""
    return np.asarray(-(probability * np.log(np.maximum(probability, 1e-30))).sum(axis=1))


class Whitening:
    """It maps rows x (N, D) to w(x) (N, D), so that w(x)·w(y) = xᵀ Λ y for a precision matrix Λ."""

    def __init__(self, dim: int, factor: float) -> None:
        """Start with Λ = factor² I."""
        self.kind, self.factor = _BY_FACTOR, factor
        self.matrix = np.zeros((dim, dim), order="F")  # LAPACK's order

    def by_factor(self, factor: float) -> None:
        """Take Λ = factor² I."""
        self.kind, self.factor = _BY_FACTOR, factor

    def by_inverse(self, covariance: Floats) -> None:
        """Take the inverse of a matrix; LinAlgError if it (D, D) is not positive definite."""
        self.matrix = np.asfortranarray(cholesky(covariance, lower=True, check_finite=False))
        self.kind = _BY_INVERSE

    def by_pseudo_inverse(self, covariance: Floats) -> None:
        """Take the pseudo-inverse of a positive semi-definite matrix (D, D)."""
        values, vectors = np.linalg.eigh(covariance)
        kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
        roots = np.zeros_like(values)
        roots[kept] = 1 / np.sqrt(values[kept])
        self.matrix = np.asfortranarray(vectors * roots)
        self.kind = _BY_PSEUDO_INVERSE

    def __call__(self, rows: Floats) -> Floats:
        """Map rows (N, D)."""
        if self.kind == _BY_FACTOR:
            return self.factor * rows
        if self.kind == _BY_PSEUDO_INVERSE:
            return np.asarray(rows @ self.matrix)
        solved = solve_triangular(self.matrix, rows.T, lower=True, check_finite=False)
        return np.ascontiguousarray(solved.T)
