"""DOTA, "Distributional Test-Time Adaptation of Vision-Language Models", arXiv 2409.19375.

Each class has a Gaussian, learned from the frozen model's soft labels p: a count c, a mean μ and a
covariance Σ_c. All classes share one precision Λ = ((1-ε) mean Σ_c + ε I)⁻¹. A sample is classified
by the frozen logits plus the Gaussians', whose weight grows with the counts; then it is learned.

Counts and means are always current. Λ is updated after `dota-every` offered samples: after each, as
in the released code, because 128 between two updates lose up to 1.2 points of accuracy. If the
C · D² numbers of C covariances take too much memory, all classes share one Σ, to which each adds
with the weight p_c (ours, not the paper's).

The soft labels are the frozen model's, so the counts and means of a block are known in advance:
with U = c μ = U⁰ + Σ_j p_j v_j a block takes a few products.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ssyrk

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Floats, Frozen, Whitening, cut
from zsntta_cli.methods.settings import ABOVE_ZERO, FROM_ONE, FROM_ZERO, MethodSettings
from zsntta_cli.settings.options import Range, option


@dataclass(frozen=True)
class DOTASettings(MethodSettings):
    """DOTA, arXiv 2409.19375: each class has a Gaussian, learned from the frozen soft labels.

    The paper chooses values for each set; these are from another implementation.
    """

    dota_variance: float = option(1e-4, "σ: initial variance of a class.", within=ABOVE_ZERO)
    dota_shrinkage: float = option(
        1e-3, "ε: share of the identity in the covariance.", within=Range(above=0, most=1)
    )
    dota_rate: float = option(
        0.02, "ρ: weight that the Gaussians gain with each item of each class.", within=FROM_ZERO
    )
    dota_weight: float = option(0.1, "η: largest weight of the Gaussians.", within=FROM_ZERO)
    dota_every: int = option(
        1, "Items that are offered between two updates of the covariance.", within=FROM_ONE
    )
    dota_memory: int = option(
        512,
        "Memory for covariances of the classes, in MB; beyond it one covariance serves all.",
        within=FROM_ZERO,
    )

    def pools(self, classes: int, dim: int) -> bool:
        """Whether covariances of C classes of D dims would exceed the memory for them."""
        return 4 * classes * dim**2 > self.dota_memory * 2**20

    def note(self, classes: int, dim: int) -> str:
        """The difference from the paper on C classes of D dims, or "" if there is none."""
        if not self.pools(classes, dim):
            return ""
        return (
            f"has one covariance of all classes, not the paper's one of each: those of "
            f"{classes:,} classes of {dim:,} dims take more than {self.dota_memory:,} MB "
            f"(dota-memory)"
        )


_BLOCK = 128  # items in one product
_START = 0.001  # initial value of all means, as in the released code
_LEAST = 1e-4  # a smaller soft label adds to counts and means, but not to a class's covariance


class DOTA:
    """The classifier while the stream runs."""

    def __init__(self, data: StreamData, options: DOTASettings) -> None:
        self.options = options
        classes, dim = data.pool.text_features.shape
        self.gaussians = DOTAGaussians(classes, dim, options)
        self.offered = 0

    def classify(self, items: StreamData, offered: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Classify T items by the frozen logits plus the Gaussians'; the `offered` are learned."""
        class_index = np.empty(len(items), np.int32)
        number = self.offered + np.cumsum(offered)
        after = np.flatnonzero(offered & (number % self.options.dota_every == 0)) + 1
        for part, renews in cut(after, len(items), _BLOCK):
            if renews:
                self.gaussians.renew()
            frozen = Frozen.of(items, part)
            label = frozen.probability * offered[part, None]
            logits = frozen.logits + self.gaussians.learn(frozen.features, label)
            class_index[part] = logits.argmax(axis=1)
        if len(items) in after:
            self.gaussians.renew()
        self.offered += int(offered.sum())
        return class_index


class DOTAGaussians:
    """Counts c (C,), sums U = c μ (C, D), and covariances of each class or of all together."""

    def __init__(self, classes: int, dim: int, options: DOTASettings) -> None:
        self.options = options
        self.count = np.ones(classes)
        self.sums = np.full((classes, dim), _START)
        kind = Pooled if options.pools(classes, dim) else OfClasses
        self.covariance: Pooled | OfClasses = kind(classes, dim, options.dota_variance)
        self.whiten = Whitening(dim, 1.0)
        self.renew()

    def renew(self) -> None:
        """Compute Λ from what was learned so far."""
        share, covariance = self.options.dota_shrinkage, self.covariance.mean(self.count)
        self.whiten.by_inverse((1 - share) * covariance + share * np.eye(len(covariance)))
        self.whitened = self.whiten(self.sums)
        self.squares = (self.whitened**2).sum(axis=1)

    def learn(self, features: Floats, label: Floats) -> Floats:
        """Return the weighted logits (B, C) of items; each is then learned by its soft label."""
        count = self.count + _before(label)
        rows = self.whiten(features)
        among = rows @ rows.T
        product = rows @ self.whitened.T + np.tril(among, -1) @ label  # v·ΛU
        steps = label * (2 * product + label * np.diag(among)[:, None])
        squares = self.squares + _before(steps)  # U·ΛU
        rate = self.options.dota_rate * count.mean(axis=1, keepdims=True)
        weight = np.minimum(rate, self.options.dota_weight)
        self.covariance.learn(features, label, count, self.sums)
        self.count = self.count + label.sum(axis=0)
        self.sums = self.sums + label.T @ features
        self.whitened = self.whitened + label.T @ rows
        self.squares = self.squares + steps.sum(axis=0)
        return np.asarray(weight * (product / count - 0.5 * squares / count**2))


class OfClasses:
    """Σ_c of each class times its count, (C, D, D): Σ_i p_i (v_i - μ_c)(v_i - μ_c)ᵀ.

    The matrices are symmetric, so only the lower triangle and the diagonal are kept.
    """

    def __init__(self, classes: int, dim: int, variance: float) -> None:
        self.scatter = np.zeros((classes, dim, dim), np.float32)
        self.variance = variance

    def learn(self, features: Floats, label: Floats, count: Floats, sums: Floats) -> None:
        """Add a block's items by the means before each; `sums` (C, D) are those at its start."""
        rows, weight = features.astype(np.float32), label.astype(np.float32)
        share, first = (1 / count).astype(np.float32), sums.astype(np.float32)
        order = np.arange(len(rows))
        for c in np.flatnonzero((label > _LEAST).any(axis=0)):
            items = np.flatnonzero(label[:, c] > _LEAST)
            before = np.where(order < items[:, None], weight[:, c], 0)
            mean = (first[c] + before @ rows) * share[items, c, None]
            apart = np.sqrt(weight[items, c, None]) * (rows[items] - mean)
            ssyrk(1.0, apart.T, 1.0, self.scatter[c].T, overwrite_c=True)

    def mean(self, count: Floats) -> Floats:
        """The mean (D, D) of the covariances of all classes."""
        classes, dim, _ = self.scatter.shape
        weight = (1 / (classes * count)).astype(np.float32)
        total = (weight @ self.scatter.reshape(classes, -1)).reshape(dim, dim)
        total += np.tril(total, -1).T
        start = self.variance * (1 / count).mean()
        return np.asarray(total.astype(np.float64) + start * np.eye(dim))


class Pooled:
    """One Σ of all classes, times the sum of their counts: (D, D)."""

    def __init__(self, classes: int, dim: int, variance: float) -> None:
        self.scatter = classes * variance * np.eye(dim)

    def learn(self, features: Floats, label: Floats, count: Floats, sums: Floats) -> None:
        """Add Σ_ic p_ic (v_i - μ_c)(v_i - μ_c)ᵀ of a block, as `OfClasses` does.

        With μ_c = (U_c⁰ + Σ_j<i p_jc v_j) / c_ic it takes products of first sums and features only.
        """
        first, second = label / count, label / count**2
        later = _before(second[::-1])[::-1]  # sums over the items after each
        mean = first @ sums + np.tril(first @ label.T, -1) @ features
        pairs = np.triu(label @ (label * later).T)
        pairs = np.triu(pairs, 1).T + pairs
        by_features = 0.5 * (label.sum(axis=1)[:, None] * features + pairs @ features) - mean
        by_sums = 0.5 * second.sum(axis=0)[:, None] * sums + (label * later).T @ features
        half = features.T @ by_features + sums.T @ by_sums
        self.scatter += half + half.T

    def mean(self, count: Floats) -> Floats:
        """The covariance (D, D)."""
        return np.asarray(self.scatter / count.sum())


def _before(steps: Floats) -> Floats:
    """The sums (B, C) of the steps before each item."""
    return np.asarray(np.cumsum(steps, axis=0) - steps)
