"""Gaussians of the classes, learned from weighted items; DDE adds them to the frozen logits.

Means start at the texts, covariances at 0.002 I, counts at 1. All classes share one precision
Λ = ((1 - ε) mean_c Σ_c + ε I)⁻¹.

n_c Σ_c = 0.002 I + S_c, where S_c is kept in single precision. The system allocates memory when it
is written, so classes without items take none.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

_FIRST_VARIANCE = 0.002
_SHRINKAGE = 1e-4  # ε
Floats = NDArray[np.float64]


class ClassGaussians:
    """Counts n (C,), means μ (C, D) and scatters S (C, D, D) of the classes."""

    def __init__(self, texts: Floats) -> None:
        classes, dim = texts.shape
        self.means, self.counts = texts.copy(), np.ones(classes)
        self.scatters = np.zeros((classes, dim, dim), np.float32)

    @property
    def mean_count(self) -> float:
        """The mean count of a class: the weights of its items, and 1 for the text."""
        return float(self.counts.mean())

    def learn(self, features: Floats, classes: NDArray[np.intp], weights: Floats) -> None:
        """Learn items (B, D), each for its class (B,) and with its weight (B,)."""
        for c in np.unique(classes):
            x, w = features[classes == c], weights[classes == c]
            away = (np.sqrt(w)[:, None] * (x - self.means[c])).astype(np.float32)
            self.scatters[c] += away.T @ away
            after = self.counts[c] + w.sum()
            self.means[c] = (self.counts[c] * self.means[c] + w @ x) / after
            self.counts[c] = after

    def log_densities(self, features: Floats) -> Floats:
        """xᵀ Λ μ_c - ½ μ_cᵀ Λ μ_c (B, C) of items (B, D)."""
        share = 1 / (len(self.counts) * self.counts)
        spread = np.tensordot(share.astype(np.float32), self.scatters, axes=1).astype(np.float64)
        variance = _FIRST_VARIANCE * share.sum()
        covariance = (1 - _SHRINKAGE) * spread
        covariance[np.diag_indices(len(covariance))] += (1 - _SHRINKAGE) * variance + _SHRINKAGE
        root = cholesky(covariance, lower=True)
        items, means = (
            solve_triangular(root, rows.T, lower=True) for rows in (features, self.means)
        )
        return np.asarray(items.T @ means - 0.5 * (means**2).sum(axis=0))
