"""OGA, "Online Gaussian Test-Time Adaptation of Vision-Language Models", arXiv 2501.04352.

Each class keeps a few samples of lowest zero-shot entropy and gets a Gaussian from them; all share
one covariance. A sample enters the memory and is then classified by likelihood times the frozen
model's probability. The mean of a class of fewer than two samples is its text.

Means are always current. The covariance is computed again after `oga-every` offered samples, before
the last of them is classified: after each one, as in the released code, because with 128 between
two updates up to 3.4 points of accuracy are lost. The frozen model alone determines which samples
enter, so a block of items takes one product, corrected where a mean moves within the block.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import (
    Floats,
    Frozen,
    Whitening,
    cut,
    entropy_of,
)
from zsntta_cli.methods.settings import FROM_ONE, FROM_ZERO, MethodSettings
from zsntta_cli.settings.options import option


@dataclass(frozen=True)
class OGASettings(MethodSettings):
    """OGA, arXiv 2501.04352: each class has a Gaussian, learned from its most certain samples.

    The values are those of its released code for all sets.
    """

    oga_shots: int = option(8, "Samples of each class in the memory.", within=FROM_ONE)
    oga_scale: float = option(0.05, "τ: scale of the Gaussians' log densities.", within=FROM_ZERO)
    oga_every: int = option(  # 128 is faster, but loses up to 3.4 points of Acc_S
        1, "Items that are offered between two updates of the covariance.", within=FROM_ONE
    )
    # The released code divides sums by the capacity, even if a class has fewer samples.
    oga_short_means: bool = option(
        False, "Divide the sums of a class by its capacity instead of by its count."
    )


_BLOCK = 256  # items in one product
_NOTHING = 1e-12  # variance below which there is only rounding


class OGA:
    """The classifier while the stream runs."""

    def __init__(self, data: StreamData, options: OGASettings) -> None:
        self.options = options
        self.gaussians = OGAGaussians(data.pool.text_features.astype(np.float64), options)
        self.offered = 0

    def classify(self, items: StreamData, offered: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Classify T items by p · softmax(τ ℓ); the `offered` (T,) may enter the memory."""
        class_index = np.empty(len(items), np.int32)
        number = self.offered + np.cumsum(offered)
        completing = np.flatnonzero(offered & (number % self.options.oga_every == 0))
        for part, renews in cut(completing, len(items), _BLOCK):
            frozen = Frozen.of(items, part)
            density = self.gaussians.densities(
                frozen, items.class_index[part], offered[part], renews
            )
            class_index[part] = (frozen.logits + self.options.oga_scale * density).argmax(axis=1)
        self.offered += int(offered.sum())
        return class_index


class OGAMemory:
    """The `shots` samples of lowest entropy of each class, and their sums."""

    def __init__(self, classes: int, dim: int, shots: int) -> None:
        self.keys = np.zeros((classes, shots, dim))
        self.entropies = np.full((classes, shots), np.log(classes))  # a free place has ln C
        self.count = np.zeros(classes, np.int64)
        self.sums = np.zeros((classes, dim))
        self.entered, self.left = Samples(dim), Samples(dim)  # since the last `scatter`
        self.total = np.zeros((dim, dim))

    def offer(self, label: int, entropy: float, feature: Floats) -> bool:
        """Add a sample if its class has a free place or a sample of higher entropy; say whether."""
        count, shots = int(self.count[label]), self.keys.shape[1]
        place, highest = count, self.entropies[label, -1]
        if count == shots:  # of equal entropies the last place
            place = shots - 1 - int(self.entropies[label, ::-1].argmax())
            highest = self.entropies[label, place]
        if not entropy < highest:
            return False
        if count == shots:
            self.left.add(self.keys[label, place])
            self.sums[label] -= self.keys[label, place]
        self.keys[label, place], self.entropies[label, place] = feature, entropy
        self.entered.add(feature)
        self.sums[label] += feature
        self.count[label] = min(count + 1, shots)
        return True

    @property
    def changed(self) -> bool:
        """Whether a sample entered since the last `scatter`."""
        return len(self.entered.features) > 0

    def scatter(self) -> Floats:
        """Σ x xᵀ (D, D) over the samples."""
        for samples, sign in ((self.entered, 1), (self.left, -1)):
            if len(samples.features):
                self.total += sign * (samples.features.T @ samples.features)
                samples.features = samples.features[:0]
        return self.total


class Samples:
    """Some samples in order."""

    def __init__(self, dim: int) -> None:
        self.features = np.empty((0, dim))

    def add(self, feature: Floats) -> None:
        """Add a sample (D,)."""
        self.features = np.concatenate([self.features, feature[None]])


class OGAGaussians:
    """The memory, the means of its classes and their covariance."""

    def __init__(self, text: Floats, options: OGASettings) -> None:
        self.text, self.options = text, options
        self.memory = OGAMemory(len(text), text.shape[1], options.oga_shots)
        self.whiten = Whitening(text.shape[1], float(np.sqrt(text.shape[1])))  # Λ = D I
        self.means = self.whiten(text)
        # The sums over classes that a covariance needs are updated by the few classes whose samples
        # changed: with ImageNet's 1,000 an item of real features takes 12 ms instead of 23.
        self.changed = np.zeros(len(text), np.bool_)
        self.centres = text.copy()  # μ (C, D), without what changed
        self.halves = np.zeros_like(text)  # s - ½ n μ (C, D) of sums s and counts n
        self.rests = np.zeros_like(text)  # s - n μ (C, D)
        self.products = np.zeros((text.shape[1],) * 2)  # Σ (s - ½ n μ) μᵀ over the classes
        self.rest = np.zeros(text.shape[1])  # Σ (s - n μ)

    def densities(
        self, frozen: Frozen, label: NDArray[np.int32], offered: NDArray[np.bool_], renews: bool
    ) -> Floats:
        """ℓ (B, C) of items, up to a term that all classes share; `renews`: update at the first."""
        entropy = entropy_of(frozen.probability)
        moves: list[tuple[int, int, Floats]] = []
        for i in np.flatnonzero(offered).tolist():
            c = int(label[i])
            if self.memory.offer(c, float(entropy[i]), frozen.features[i]):
                moves.append((i, c, self._mean(c)))
                self.changed[c] = True
            if renews and i == 0 and self._renew():
                moves = []
        return self._moving(self.whiten(frozen.features), moves)

    def _mean(self, label: int) -> Floats:
        """The mean of a class's samples, or its text if there are fewer than two."""
        count = self.memory.count[label]
        if count < 2:
            return self.text[label]
        by = self.options.oga_shots if self.options.oga_short_means else count
        return np.asarray(self.memory.sums[label] / by)

    def _moving(self, rows: Floats, moves: list[tuple[int, int, Floats]]) -> Floats:
        """w(v)·w(μ) - ½ w(μ)² of whitened rows (B, D); a moved mean counts from its item on."""
        density = rows @ self.means.T - 0.5 * (self.means**2).sum(axis=1)
        if moves:
            whitened = self.whiten(np.array([mean for _, _, mean in moves]))
            for (i, c, _), mean in zip(moves, whitened, strict=True):
                density[i:, c] = rows[i:] @ mean - 0.5 * (mean @ mean)
                self.means[c] = mean
        return np.asarray(density)

    def _renew(self) -> bool:
        """Update the covariance if a class has over two samples and one entered; say whether."""
        memory = self.memory
        if memory.count.max() <= 2 or not memory.changed:
            return False
        self._update_sums()
        self._whiten_by(self._centred(), int(memory.count.sum()))
        self.means = self.whiten(self.centres)
        return True

    def _update_sums(self) -> None:
        """Replace what classes whose samples changed add to the sums over classes."""
        rows, memory = np.flatnonzero(self.changed), self.memory
        self.products -= self.halves[rows].T @ self.centres[rows]
        self.rest -= self.rests[rows].sum(axis=0)
        means = np.array([self._mean(int(c)) for c in rows])
        weighted = memory.count[rows, None] * means
        self.centres[rows] = means
        self.halves[rows] = memory.sums[rows] - 0.5 * weighted
        self.rests[rows] = memory.sums[rows] - weighted
        self.products += self.halves[rows].T @ means
        self.rest += self.rests[rows].sum(axis=0)
        self.changed[:] = False

    def _centred(self) -> Floats:
        """Σ (d - d̄)(d - d̄)ᵀ of the samples' deviations d from the means of their classes."""
        memory, products = self.memory, self.products
        apart = np.outer(self.rest, self.rest) / memory.count.sum()
        return np.asarray(memory.scatter() - products - products.T - apart)

    def _whiten_by(self, scatter: Floats, count: int) -> None:
        """Take D ((n-1) Σ + tr(Σ) I)⁻¹, or Σ's pseudo-inverse if n is above 4 D, as Λ."""
        dim = len(scatter)
        trace = np.trace(scatter) / (count - 1)
        if trace <= _NOTHING:
            self.whiten.by_factor(0.0)
        elif count > 4 * dim:
            self.whiten.by_pseudo_inverse(scatter / (count - 1))
        else:
            self.whiten.by_inverse((scatter + trace * np.eye(dim)) / dim)
