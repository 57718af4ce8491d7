"""OGA, "Online Gaussian Test-Time Adaptation of Vision-Language Models", arXiv 2501.04352.

Each class keeps a few samples of lowest zero-shot entropy and gets a Gaussian from them; all share
one covariance. A sample enters the memory and is then classified by likelihood times the frozen
model's probability. The mean of a class of fewer than two samples is its text.

The covariance is computed again after each sample that enters, as in the released code: with 128
between two updates up to 3.4 points of accuracy are lost.
"""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.adapting import Adapting, Sample
from zsntta_cli.methods.method import MethodSettings
from zsntta_cli.methods.scores import Floats
from zsntta_cli.settings.options import amount, count, option

_NOTHING = 1e-12  # variance below which there is only rounding


class OGA(Adapting):
    """OGA, arXiv 2501.04352: each class has a Gaussian, learned from its most certain samples."""

    class Settings(MethodSettings):
        # The values are those of its released code for all sets.
        oga_shots: int = count(8, "Number of samples of each class in the memory.")
        oga_scale: float = amount(0.05, "τ: scale of the Gaussians' log densities.")
        # The released code divides sums by the capacity, even if a class has fewer samples.
        oga_short_means: bool = option(
            False, "Divide the sums of a class by oga-shots instead of by its number of samples."
        )

    cites = ("fuchs2025online",)
    revision = 2
    official = {"oga_short_means": True}
    cost = (
        "keeps oga-shots images of each class and a covariance of D² numbers, which is "
        "inverted again for each image that is kept"
    )

    def start(self, data: StreamData) -> None:
        classes, dim = self.text.shape
        self.memory = np.zeros((classes, self.options.oga_shots, dim))
        self.entropies = np.full((classes, self.options.oga_shots), np.log(classes))  # free: ln C
        self.count, self.sums = np.zeros(classes, np.int64), np.zeros((classes, dim))
        self.squares, self.precision = np.zeros((dim, dim)), dim * np.eye(dim)  # Σ x xᵀ, Λ
        self.means, self.pulls = self.text, self.text @ self.precision  # μ, Λ μ

    def scores(self, item: Sample, learn: bool) -> Floats:
        """Offer the item to the memory; then score by log p + τ ℓ, up to a common term."""
        if learn:
            self._learn(item)
        density = self.pulls @ item.feature - 0.5 * (self.means * self.pulls).sum(axis=1)
        return item.logits + self.options.oga_scale * density

    def _learn(self, item: Sample) -> None:
        """Keep an item if its class has a free place or an item of higher entropy."""
        x, c, shots = item.feature, item.label, self.options.oga_shots
        place = int(self.count[c])
        if place == shots:  # of equal entropies the last place
            place = shots - 1 - int(self.entropies[c, ::-1].argmax())
        if item.entropy >= self.entropies[c, place]:
            return
        before = self.memory[c, place].copy()  # zeros if the place is free
        self.memory[c, place], self.entropies[c, place] = x, item.entropy
        self.count[c] = n = min(self.count[c] + 1, shots)
        self.sums[c] += x - before
        self.squares += np.outer(x, x) - np.outer(before, before)
        if n >= 2:  # the mean of fewer is the text
            self.means[c] = self.sums[c] / (shots if self.options.oga_short_means else n)
            self.pulls[c] = self.precision @ self.means[c]
        if self.count.max() > 2:
            self._renew()

    def _renew(self) -> None:
        """Update Λ: D ((n - 1) Σ + tr(Σ) I)⁻¹, or Σ's pseudo-inverse if n is above 4 D.

        Σ is the covariance of the items' deviations from the means of their classes.
        """
        n, dim = int(self.count.sum()), self.text.shape[1]
        weighted = self.count[:, None] * self.means
        products = (self.sums - 0.5 * weighted).T @ self.means
        rest = (self.sums - weighted).sum(axis=0)
        scatter = self.squares - products - products.T - np.outer(rest, rest) / n
        trace = np.trace(scatter) / (n - 1)
        if trace <= _NOTHING:
            self.precision = np.zeros((dim, dim))
        elif n > 4 * dim:
            self.precision = np.linalg.pinv(scatter / (n - 1), hermitian=True)
        else:
            self.precision = dim * np.linalg.inv(scatter + trace * np.eye(dim))
        self.pulls = self.means @ self.precision
