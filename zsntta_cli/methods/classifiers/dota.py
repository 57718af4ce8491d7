"""DOTA, "Distributional Test-Time Adaptation of Vision-Language Models", arXiv 2409.19375.

Each class has a Gaussian, learned from the frozen model's soft labels p: a count c, a mean μ and a
covariance Σ_c. All classes share one precision Λ = ((1-ε) mean Σ_c + ε I)⁻¹. A sample is classified
by the frozen logits plus the Gaussians', whose weight grows with the counts; then it is learned,
and Λ is computed again, as in the released code: with 128 samples between two updates up to 1.2
points of accuracy are lost.
"""

import numpy as np
from scipy.linalg import cho_solve, cholesky

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.adapting import Adapting, Sample
from zsntta_cli.methods.method import MethodSettings
from zsntta_cli.methods.scores import Floats
from zsntta_cli.settings.options import amount, part, positive

_START = 0.001  # initial value of all means, as in the released code
_LEAST = 1e-4  # a smaller soft label adds to counts and means, but not to a class's covariance


class DOTA(Adapting):
    """DOTA, arXiv 2409.19375: each class has a Gaussian, learned from the frozen soft labels."""

    class Settings(MethodSettings):
        # The paper chooses values for each set; these are from another implementation.
        dota_variance: float = positive(1e-4, "σ: initial variance of a class.")
        dota_shrinkage: float = part(1e-3, "ε: share of the identity in the covariance.")
        dota_rate: float = amount(
            0.02, "ρ: weight that the Gaussians gain with each item of the average class."
        )
        dota_weight: float = amount(0.1, "η: maximum weight of the Gaussians.")

    cites = ("han2025dota",)
    revision = 2
    cost = (
        "keeps a mean and a covariance of D² numbers for each class, and inverts the "
        "mean covariance for each item"
    )

    def start(self, data: StreamData) -> None:
        classes, dim = self.text.shape
        self.counts, self.means = np.ones(classes), np.full((classes, dim), _START)  # c, μ
        # Σ_c - σ I: the system allocates memory when it is written, so that classes without items
        # take none.
        self.covariances = np.zeros((classes, dim, dim), np.float32)
        self.mean_covariance = self.options.dota_variance * np.eye(dim)
        self._renew()

    def scores(self, item: Sample, learn: bool) -> Floats:
        """Add the Gaussians' log densities to the frozen logits; then learn the soft label."""
        weight = min(self.options.dota_rate * self.counts.mean(), self.options.dota_weight)
        density = self.pulls @ item.feature - 0.5 * (self.means * self.pulls).sum(axis=1)
        scores = item.logits + weight * density
        if learn:
            self._learn(item.feature, item.probability)
        return scores

    def _learn(self, x: Floats, p: Floats) -> None:
        """Move each class by its share of the soft label p (C,)."""
        for c in np.flatnonzero(p > _LEAST):
            away = (x - self.means[c]).astype(np.float32)
            target = np.outer(away, away)
            target[np.diag_indices(len(x))] -= self.options.dota_variance
            step = (target - self.covariances[c]) * np.float32(p[c] / (self.counts[c] + p[c]))
            self.covariances[c] += step
            self.mean_covariance += step / len(p)
        after = self.counts + p
        self.means = (self.counts[:, None] * self.means + p[:, None] * x) / after[:, None]
        self.counts = after
        self._renew()

    def _renew(self) -> None:
        """Update Λ μ (C, D) from what was learned so far."""
        share, dim = self.options.dota_shrinkage, len(self.mean_covariance)
        covariance = (1 - share) * self.mean_covariance + share * np.eye(dim)
        self.pulls = cho_solve((cholesky(covariance, lower=True), True), self.means.T).T
