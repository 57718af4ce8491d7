"""OGA, "Online Gaussian Test-Time Adaptation of Vision-Language Models", arXiv 2501.04352.

Each class keeps a few samples of lowest zero-shot entropy and gets a Gaussian from them; all share
one covariance. A sample enters the memory and is then classified by likelihood times the frozen
model's probability. The mean of a class of fewer than two samples is its text.

Means are always current. The covariance is computed again after `oga-every` offered samples, before
the last of them is classified: after each one, as in the released code, because with 128 between
two updates up to 3.4 points of accuracy are lost. The frozen model alone determines which samples
enter, so a block of items takes one product, corrected where a mean moves within the block.
"""

import bisect

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import (
    Floats,
    Frozen,
    Whitening,
    cut,
    entropy_of,
    whitening_by,
    whitening_of_inverse,
    whitening_of_pseudo_inverse,
)
from zsntta_cli.methods.settings import OGASettings

_BLOCK = 256  # items in one product
_NOTHING = 1e-12  # variance below which there is only rounding


def classes(
    data: StreamData, options: OGASettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classify T items by p · softmax(τ ℓ); those that are `offered` (T,) may enter the memory."""
    gaussians = OGAGaussians(data.pool.text_features.astype(np.float64), options)
    class_index = np.empty(len(data), np.int32)
    completing = np.flatnonzero(offered)[options.oga_every - 1 :: options.oga_every]
    for part, renews in cut(completing, len(data), _BLOCK):
        frozen = Frozen.of(data, part)
        density = gaussians.densities(frozen, data.class_index[part], offered[part], renews)
        class_index[part] = (frozen.logits + options.oga_scale * density).argmax(axis=1)
    return class_index


class OGAMemory:
    """The `shots` samples of lowest entropy of each class, and their sums.

    Sample k of class c is row `c * shots + k` of the keys (C * shots, D).
    """

    def __init__(self, classes: int, dim: int, shots: int) -> None:
        self._shots, self._most = shots, np.log(classes)  # the entropy of a free place
        self._keys = np.zeros((classes * shots, dim))
        self._ranked: list[list[tuple[float, int]]] = [[] for _ in range(classes)]
        self._entered: list[Floats] = []  # since the last `scatter`
        self._left: list[Floats] = []
        self._scatter = np.zeros((dim, dim))
        self.count = np.zeros(classes, np.int64)
        self.sums = np.zeros((classes, dim))

    def offer(self, label: int, entropy: float, feature: Floats) -> bool:
        """Add a sample if its class has a free place or a sample of higher entropy; say whether."""
        ranked = self._ranked[label]
        full = len(ranked) == self._shots
        if not entropy < (ranked[-1][0] if full else self._most):
            return False
        row = ranked.pop()[1] if full else label * self._shots + len(ranked)
        if full:
            self._left.append(self._keys[row].copy())
            self.sums[label] -= self._keys[row]
        self._keys[row] = feature
        self._entered.append(feature)
        self.sums[label] += feature
        self.count[label] = len(ranked) + 1
        bisect.insort(ranked, (entropy, row))
        return True

    @property
    def changed(self) -> bool:
        """Whether a sample entered since the last `scatter`."""
        return bool(self._entered)

    def scatter(self) -> Floats:
        """Σ x xᵀ (D, D) over the samples."""
        for rows, sign in ((self._entered, 1), (self._left, -1)):
            if rows:
                features = np.array(rows)
                self._scatter += sign * (features.T @ features)
            rows.clear()
        return self._scatter


class OGAGaussians:
    """The memory, the means of its classes and their covariance."""

    def __init__(self, text: Floats, options: OGASettings) -> None:
        self._text, self._options = text, options
        self._memory = OGAMemory(len(text), text.shape[1], options.oga_shots)
        self._whiten = whitening_by(float(np.sqrt(text.shape[1])))  # Λ = D I at the start
        self._means = self._whiten(text)
        # The sums over classes that a covariance needs are updated by the few classes whose samples
        # changed: with ImageNet's 1,000 an item of real features takes 12 ms instead of 23.
        self._changed: set[int] = set()
        self._centres = text.copy()  # μ (C, D), without what changed
        self._halves = np.zeros_like(text)  # s - ½ n μ (C, D) of sums s and counts n
        self._rests = np.zeros_like(text)  # s - n μ (C, D)
        self._products = np.zeros((text.shape[1],) * 2)  # Σ (s - ½ n μ) μᵀ over the classes
        self._rest = np.zeros(text.shape[1])  # Σ (s - n μ)

    def densities(
        self, frozen: Frozen, label: NDArray[np.int32], offered: NDArray[np.bool_], renews: bool
    ) -> Floats:
        """ℓ (B, C) of items, up to a term that all classes share; `renews`: update at the first."""
        entropy = entropy_of(frozen.probability)
        moves: list[tuple[int, int, Floats]] = []
        for i in np.flatnonzero(offered).tolist():
            c = int(label[i])
            if self._memory.offer(c, float(entropy[i]), frozen.features[i]):
                moves.append((i, c, self._mean(c)))
                self._changed.add(c)
            if renews and i == 0 and self._renew():
                moves = []
        return self._moving(self._whiten(frozen.features), moves)

    def _mean(self, label: int) -> Floats:
        """The mean of a class's samples, or its text if there are fewer than two."""
        count = self._memory.count[label]
        if count < 2:
            return self._text[label]
        by = self._options.oga_shots if self._options.oga_short_means else count
        return np.asarray(self._memory.sums[label] / by)

    def _moving(self, rows: Floats, moves: list[tuple[int, int, Floats]]) -> Floats:
        """w(v)·w(μ) - ½ w(μ)² of whitened rows (B, D); a moved mean counts from its item on."""
        density = rows @ self._means.T - 0.5 * (self._means**2).sum(axis=1)
        if moves:
            whitened = self._whiten(np.array([mean for _, _, mean in moves]))
            for (i, c, _), mean in zip(moves, whitened, strict=True):
                density[i:, c] = rows[i:] @ mean - 0.5 * (mean @ mean)
                self._means[c] = mean
        return np.asarray(density)

    def _renew(self) -> bool:
        """Update the covariance if a class has over two samples and one entered; say whether."""
        memory = self._memory
        if memory.count.max() <= 2 or not memory.changed:
            return False
        self._update_sums()
        self._whiten = _whitening(self._centred(), int(memory.count.sum()))
        self._means = self._whiten(self._centres)
        return True

    def _update_sums(self) -> None:
        """Replace what classes whose samples changed add to the sums over classes."""
        rows, memory = sorted(self._changed), self._memory
        self._products -= self._halves[rows].T @ self._centres[rows]
        self._rest -= self._rests[rows].sum(axis=0)
        means = np.array([self._mean(c) for c in rows])
        weighted = memory.count[rows, None] * means
        self._centres[rows] = means
        self._halves[rows] = memory.sums[rows] - 0.5 * weighted
        self._rests[rows] = memory.sums[rows] - weighted
        self._products += self._halves[rows].T @ means
        self._rest += self._rests[rows].sum(axis=0)
        self._changed.clear()

    def _centred(self) -> Floats:
        """Σ (d - d̄)(d - d̄)ᵀ of the samples' deviations d from the means of their classes."""
        memory, products = self._memory, self._products
        apart = np.outer(self._rest, self._rest) / memory.count.sum()
        return np.asarray(memory.scatter() - products - products.T - apart)


def _whitening(scatter: Floats, count: int) -> Whitening:
    """The whitening of D ((n-1) Σ + tr(Σ) I)⁻¹, or of Σ's pseudo-inverse if n is above 4 D."""
    dim = len(scatter)
    trace = np.trace(scatter) / (count - 1)
    if trace <= _NOTHING:
        return whitening_by(0.0)
    if count > 4 * dim:
        return whitening_of_pseudo_inverse(scatter / (count - 1))
    return whitening_of_inverse((scatter + trace * np.eye(dim)) / dim)
