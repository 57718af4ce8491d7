"""Rows seen through a precision matrix Λ: w(x) with w(x)·w(y) = xᵀ Λ y, without an inverse."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

Floats = NDArray[np.float64]
Whitening = Callable[[Floats], Floats]  # rows (N, D) to rows (N, D)


def scaled(factor: float) -> Whitening:
    """Of Λ = factor² I."""
    return lambda rows: factor * rows


def inverse(covariance: Floats) -> Whitening:
    """Of the inverse of a positive definite matrix (D, D); LinAlgError where it is none."""
    lower = cholesky(covariance, lower=True, check_finite=False)

    def whitened(rows: Floats) -> Floats:
        solved = solve_triangular(lower, rows.T, lower=True, check_finite=False)
        return np.ascontiguousarray(solved.T)

    return whitened


def pseudo_inverse(covariance: Floats) -> Whitening:
    """Of the pseudo-inverse of a positive semi-definite matrix (D, D)."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    roots = np.zeros_like(values)
    roots[kept] = 1 / np.sqrt(values[kept])
    return lambda rows: np.asarray(rows @ (vectors * roots))
