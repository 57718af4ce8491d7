"""DOTA, "Distributional Test-Time Adaptation of Vision-Language Models", arXiv 2409.19375.

A Gaussian a class, learned from the frozen model's soft labels p: counts c, means μ and covariances
Σ_c; all are judged by one precision Λ = ((1-ε) mean Σ_c + ε I)⁻¹. A sample is classified by the
frozen logits plus the Gaussians', whose weight grows with the counts; then it is learned.

Counts and means are those of the moment; Λ is made anew after every so many offered samples: after
each one, as released, for an older one loses accuracy, up to 1.2 points where there are 128
between. Covariances of C classes are C · D² numbers: where they take too much memory, one Σ of all
classes takes their place, to which each class adds with the weight p_c (ours, not the paper's).

Soft labels are the frozen model's, so that counts and means of a block are known beforehand: with
U = c μ = U⁰ + Σ_j p_j v_j its items are a few products.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ssyrk

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Floats, Frozen, cut, whitening_of_inverse
from zsntta_cli.methods.settings import DOTASettings

_BLOCK = 128  # items a product at a time
_START = 0.001  # of all means, as in the released code
_LEAST = 1e-4  # soft labels below it add to counts and means, but not to a class's covariance


def classes(
    data: StreamData, options: DOTASettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classes (T,) by the frozen logits plus the Gaussians'; `offered` (T,): what is learned."""
    total, dim = data.pool.text_features.shape
    gaussians = DOTAGaussians(total, dim, options)
    class_index = np.empty(len(data), np.int32)
    after = np.flatnonzero(offered)[options.dota_every - 1 :: options.dota_every] + 1
    for part, renews in cut(after, len(data), _BLOCK):
        if renews:
            gaussians.renew()
        frozen = Frozen.of(data, part)
        label = frozen.probability * offered[part, None]
        logits = frozen.logits + gaussians.learn(frozen.features, label)
        class_index[part] = logits.argmax(axis=1)
    return class_index


class DOTAGaussians:
    """Counts c (C,), sums U = c μ (C, D), and covariances of classes or of all."""

    def __init__(self, classes: int, dim: int, options: DOTASettings) -> None:
        self._options = options
        self._count = np.ones(classes)
        self._sums = np.full((classes, dim), _START)
        kind = Pooled if options.pools(classes, dim) else OfClasses
        self._covariance: Pooled | OfClasses = kind(classes, dim, options.dota_variance)
        self.renew()

    def renew(self) -> None:
        """Λ from what was learned up to now."""
        share, covariance = self._options.dota_shrinkage, self._covariance.mean(self._count)
        shrunk = (1 - share) * covariance + share * np.eye(len(covariance))
        self._whiten = whitening_of_inverse(shrunk)
        self._whitened = self._whiten(self._sums)
        self._squares = (self._whitened**2).sum(axis=1)

    def learn(self, features: Floats, label: Floats) -> Floats:
        """Weighted logits (B, C) of items before each is learned by its soft label (B, C)."""
        count = self._count + _before(label)
        rows = self._whiten(features)
        among = rows @ rows.T
        product = rows @ self._whitened.T + np.tril(among, -1) @ label  # v·ΛU
        steps = label * (2 * product + label * np.diag(among)[:, None])
        squares = self._squares + _before(steps)  # U·ΛU
        rate = self._options.dota_rate * count.mean(axis=1, keepdims=True)
        weight = np.minimum(rate, self._options.dota_weight)
        self._covariance.learn(features, label, count, self._sums)
        self._count = self._count + label.sum(axis=0)
        self._sums = self._sums + label.T @ features
        self._whitened = self._whitened + label.T @ rows
        self._squares = self._squares + steps.sum(axis=0)
        return np.asarray(weight * (product / count - 0.5 * squares / count**2))


class OfClasses:
    """Σ_c of each class, times its count: (C, D, D), as Σ_i p_i (v_i - μ_c)(v_i - μ_c)ᵀ.

    They are symmetric: only what is on and below the diagonal is kept.
    """

    def __init__(self, classes: int, dim: int, variance: float) -> None:
        self._scatter = np.zeros((classes, dim, dim), np.float32)
        self._variance = variance

    def learn(self, features: Floats, label: Floats, count: Floats, sums: Floats) -> None:
        """Add a block's items, each with the means before it; counts (B, C), first sums (C, D)."""
        rows, weight = features.astype(np.float32), label.astype(np.float32)
        share, first = (1 / count).astype(np.float32), sums.astype(np.float32)
        order = np.arange(len(rows))
        for c in np.flatnonzero((label > _LEAST).any(axis=0)):
            items = np.flatnonzero(label[:, c] > _LEAST)
            before = np.where(order < items[:, None], weight[:, c], 0)
            mean = (first[c] + before @ rows) * share[items, c, None]
            apart = np.sqrt(weight[items, c, None]) * (rows[items] - mean)
            ssyrk(1.0, apart.T, 1.0, self._scatter[c].T, overwrite_c=True)

    def mean(self, count: Floats) -> Floats:
        """The mean (D, D) of the covariances of all classes."""
        classes, dim, _ = self._scatter.shape
        weight = (1 / (classes * count)).astype(np.float32)
        total = (weight @ self._scatter.reshape(classes, -1)).reshape(dim, dim)
        total += np.tril(total, -1).T
        start = self._variance * (1 / count).mean()
        return np.asarray(total.astype(np.float64) + start * np.eye(dim))


class Pooled:
    """One Σ of all classes, times the sum of their counts: (D, D)."""

    def __init__(self, classes: int, dim: int, variance: float) -> None:
        self._scatter = classes * variance * np.eye(dim)

    def learn(self, features: Floats, label: Floats, count: Floats, sums: Floats) -> None:
        """Add Σ_ic p_ic (v_i - μ_c)(v_i - μ_c)ᵀ of a block, as of `OfClasses`.

        With μ_c = (U_c⁰ + Σ_j<i p_jc v_j) / c_ic all of it is between the first sums and features.
        """
        first, second = label / count, label / count**2
        left = _before(second[::-1])[::-1]  # of the items after each
        mean = first @ sums + np.tril(first @ label.T, -1) @ features
        pairs = np.triu(label @ (label * left).T)
        pairs = np.triu(pairs, 1).T + pairs
        own = 0.5 * (label.sum(axis=1)[:, None] * features + pairs @ features) - mean
        across = 0.5 * second.sum(axis=0)[:, None] * sums + (label * left).T @ features
        half = features.T @ own + sums.T @ across
        self._scatter += half + half.T

    def mean(self, count: Floats) -> Floats:
        """The covariance (D, D)."""
        return np.asarray(self._scatter / count.sum())


def _before(steps: Floats) -> Floats:
    """Sums (B, C) of the steps before each item."""
    return np.asarray(np.cumsum(steps, axis=0) - steps)
