"""Gaussians of the classes, learned from weighted items; DDE adds them to the frozen logits.

Means start at the texts, covariances at 0.002 I, counts at 1. All classes share one precision
Λ = ((1 - ε) mean_c Σ_c + ε I)⁻¹.

n_c Σ_c = 0.002 I + S_c, where only the lower half of S_c is kept, in single precision. The system
allocates memory when it is written, so classes without items take none. Only the classes of a batch
change the mean of all Σ_c.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from zsntta_cli.methods.kernels.compiled import compiled

_FIRST_VARIANCE = 0.002
_SHRINKAGE = 1e-4  # ε
Floats = NDArray[np.float64]


class ClassGaussians:
    """Counts n (C,), means μ (C, D), and the lower halves of S_c and of the mean of S_c / n_c."""

    def __init__(self, texts: Floats) -> None:
        classes, dim = texts.shape
        self.means, self.counts = texts.copy(), np.ones(classes)
        self.scatters = np.zeros((classes, dim * (dim + 1) // 2), np.float32)
        self.spread = np.zeros(dim * (dim + 1) // 2)

    @property
    def mean_count(self) -> float:
        """The mean count of a class: the weights of its items, and 1 for the text."""
        return float(self.counts.mean())

    def learn(self, features: Floats, classes: NDArray[np.intp], weights: Floats) -> None:
        """Learn items (B, D), each for its class (B,) and with its weight (B,)."""
        order = np.argsort(classes, kind="stable")
        features, classes, weights = features[order], classes[order], weights[order]
        touched, starts = np.unique(classes, return_index=True)
        before = self.counts[touched]
        after = before + np.add.reduceat(weights, starts) if len(touched) else before
        away = (features - self.means[classes]) * np.sqrt(weights)[:, None]
        rates = np.stack([1 / after - 1 / before, 1 / after]) / len(self.counts)
        away, rates = away.astype(np.float32), rates.astype(np.float32)
        bounds = np.append(starts, len(classes))
        room = np.empty(features.shape[1], np.float32)
        _scatter(self.spread, self.scatters, touched, bounds, away, rates, room)
        sums = before[:, None] * self.means[touched]
        np.add.at(sums, np.searchsorted(touched, classes), weights[:, None] * features)
        self.means[touched], self.counts[touched] = sums / after[:, None], after

    def log_densities(self, features: Floats) -> Floats:
        """xᵀ Λ μ_c - ½ μ_cᵀ Λ μ_c (B, C) of items (B, D)."""
        dim = self.means.shape[1]
        covariance = np.zeros((dim, dim))
        covariance[np.tril_indices(dim)] = (1 - _SHRINKAGE) * self.spread
        first = (1 - _SHRINKAGE) * _FIRST_VARIANCE * np.mean(1 / self.counts)
        covariance[np.diag_indices(dim)] += first + _SHRINKAGE
        root = cholesky(covariance, lower=True)
        items, means = (
            solve_triangular(root, rows.T, lower=True) for rows in (features, self.means)
        )
        return np.asarray(items.T @ means - 0.5 * (means**2).sum(axis=0))


@compiled
def _scatter(spread, scatters, touched, bounds, away, rates, room):  # type: ignore[no-untyped-def]
    """Add items' outer products to the scatters of their classes, and these to their mean.

    `away` (B, D) are the items of the `touched` classes (K,), each class between two `bounds`.
    `rates` (2, K) are the weights of the old scatter and of the added one in the mean. All are
    lower halves, row after row. `room` (D,) is overwritten.
    """
    for i in range(away.shape[1]):
        start = i * (i + 1) // 2
        mean = room[: i + 1]
        mean[:] = 0
        for c in range(len(touched)):
            scatter = scatters[touched[c], start : start + i + 1]
            changed, entering = rates[0, c], rates[1, c]
            for j in range(i + 1):
                mean[j] += changed * scatter[j]
            for k in range(bounds[c], bounds[c + 1]):
                factor, row = away[k, i], away[k]
                for j in range(i + 1):
                    added = factor * row[j]
                    mean[j] += entering * added
                    scatter[j] += added
        for j in range(i + 1):
            spread[start + j] += mean[j]
