"""StatA, TransCLIP and LAME: an item is classified together with its block of N items.

So its class is known up to N - 1 items after it arrives. Neighbours in the block pull each other to
one class, and nothing is kept from block to block.

StatA, "Realistic Test-Time Adaptation of Vision-Language Models", CVPR 2025, arXiv 2501.03729:
Gaussians of the classes are fitted to the items and held near the class texts, more so if a class
has few items. This follows the paper's equations; the released code (AGPL-3.0) was not used.

TransCLIP, "Boosting Vision-Language Models with Transduction", NeurIPS 2024, arXiv 2406.01837, in
the zero-shot form in StatA's paper: the Gaussians share one variance, which starts at 1 / D, and
are fitted to the items alone.

LAME, "Parameter-free Online Test-time Adaptation", CVPR 2022, arXiv 2201.05718: the frozen
probabilities are smoothed over each item's nearest others until they no longer change. Accuracy
rises if neighbours share a class; if not, errors spread.
"""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.adapting import frozen
from zsntta_cli.methods.method import Classifier, MethodSettings
from zsntta_cli.methods.scores import Floats, Mask, blocks, softmax, unit
from zsntta_cli.settings.options import amount, count

_LEAST = 1e-10  # smallest variance, sum of assignments, and probability
_INNER_STEPS = 5  # assignments between two fits
_SHARPNESS = 50.0  # divisor of the log densities
_STILL = 1e-8  # relative change of LAME's energy at which its steps end


class BlockSettings(MethodSettings):
    """The settings of all classifiers of whole blocks of items."""

    block: int = count(64, "Number of items that are classified together.")

    @property
    def at_once(self) -> int:
        """The number of items that are classified together."""
        return self.block


class BlockClassifier(Classifier):
    """A classifier of whole blocks of items, which keeps nothing between them."""

    online = False

    @abstractmethod
    def solve(self, features: Floats, logits: Floats) -> Floats:
        """The probabilities (N, C) of items, from their unit features (N, D) and logits (N, C)."""

    def classify(self, items: StreamData, offered: Mask) -> NDArray[np.int32]:
        """Classify T items block by block, whatever the detector calls them.

        Injected noise is left out, and has the frozen model's class.
        """
        class_index = items.class_index.copy()
        for block in blocks(len(items), self.options.block):
            rows = ~items.injected[block]
            if rows.any():
                features, logits = frozen(items, block)
                class_index[block][rows] = self.solve(features[rows], logits[rows]).argmax(axis=1)
        return class_index


def neighbour_graph(features: Floats, count: int, weight: float | None = None) -> Floats:
    """The weights (N, N) of each item's `count` nearest others: their cosines, or one weight.

    They are not symmetric.
    """
    cosines = features @ features.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : min(count, len(features) - 1)]
    weights = np.take_along_axis(cosines, nearest, axis=1) if weight is None else weight
    graph = np.zeros_like(cosines)
    np.put_along_axis(graph, nearest, weights, axis=1)
    return graph


class StatA(BlockClassifier):
    """StatA: Gaussians of the classes are fitted to a block and held near the texts."""

    class Settings(BlockSettings):
        # The values of StatA's paper.
        block_neighbours: int = count(3, "Number of nearest other items that influence an item.")
        block_smoothing: float = amount(1.0, "λ: weight of the neighbours.")
        block_steps: int = amount(10, "Number of times the classes are fitted to a block.")

    cites: ClassVar[tuple[str, ...]] = ("zanella2025realistic",)
    cost = "keeps nothing between blocks; fits C Gaussians to each block, block-steps times"

    def solve(self, features: Floats, logits: Floats) -> Floats:
        """Fit Gaussians and assign the items in turn; return their assignments (N, C)."""
        o, z = self.options, softmax(logits)
        unary = np.log(np.maximum(z, 1e-30))
        graph = neighbour_graph(features, o.block_neighbours)
        pull = o.block_smoothing / (2 * o.block_neighbours) * (graph + graph.T)
        first = self.spread(z, features)
        means, variances = self.text, np.tile(first + _LEAST, (len(self.text), 1))
        for step in range(o.block_steps + 1):
            if step:
                means, variances = self.fit(z, features, first)
            # The log densities (N, C), up to a constant.
            precision = 1 / variances
            far = features**2 @ precision.T - 2 * features @ (means * precision).T
            far += (means**2 * precision).sum(1) + np.log(variances).sum(1)
            for _ in range(_INNER_STEPS):
                z = softmax(unary - far / 2 / _SHARPNESS + pull @ z)
        return z

    def spread(self, z: Floats, features: Floats) -> Floats:
        """The first variance (D,): the mean square of the items' distances to their texts."""
        near, square = z.T @ features, (features**2).sum(0)
        squares = z.sum(0) @ self.text**2 + square - 2 * (near * self.text).sum(0)
        return np.asarray(np.maximum(squares / len(z), 0))

    def fit(self, z: Floats, features: Floats, first: Floats) -> tuple[Floats, Floats]:
        """The means and variances (C, D); classes with few items are held near their texts."""
        count = np.bincount(z.argmax(1), minlength=len(self.text))
        trust = (count / (1 + count))[:, None]
        total, drawn = z.sum(0)[:, None] + _LEAST, z.T @ features
        means = unit(trust * unit(drawn) + (1 - trust) * self.text)
        variances = (z.T @ features**2 - 2 * means * drawn) / total + means**2
        anchor = first + (self.text - means) ** 2
        return means, trust * np.maximum(variances, 0) + (1 - trust) * anchor + _LEAST


class TransCLIP(StatA):
    """TransCLIP as in StatA's paper: Gaussians of one variance are fitted to a block alone."""

    revision = 2
    cites = "zanella2024boosting", "zanella2025realistic"

    def spread(self, z: Floats, features: Floats) -> Floats:
        """The same variance in each dim, 1 / D, that of a unit vector."""
        return np.full(features.shape[1], 1 / features.shape[1])

    def fit(self, z: Floats, features: Floats, first: Floats) -> tuple[Floats, Floats]:
        """Fit the means of all classes to the items alone, and one variance."""
        drawn, total = z.T @ features, z.sum(0)[:, None]
        means = unit(drawn)
        squares = (total * means**2 - 2 * means * drawn).sum(0) + (features**2).sum(0)
        variance = np.maximum(squares / len(features), 0) + _LEAST
        return means, np.tile(variance, (len(means), 1))


class LAME(BlockClassifier):
    """LAME: the probabilities of a block are smoothed over neighbouring items."""

    class Settings(BlockSettings):
        lame_neighbours: int = count(5, "Number of nearest other items that influence an item.")
        lame_strength: float = amount(1.0, "λ: weight of the neighbours.")
        lame_steps: int = count(100, "Maximum number of steps for a block.")

    revision = 2
    cites = ("boudiaf2022parameter",)
    cost = "keeps nothing between blocks; multiplies each block by itself, up to lame-steps times"

    def solve(self, features: Floats, logits: Floats) -> Floats:
        """The class probabilities (N, C) of a block's items."""
        o = self.options
        graph = neighbour_graph(features, o.lame_neighbours, o.lame_strength)
        y = softmax(logits)
        unary, energy = -np.log(y + _LEAST), np.inf
        for step in range(o.lame_steps):
            pulled = graph @ y
            y = softmax(pulled - unary)
            logs = np.log(np.maximum(y, 1e-20))
            before, energy = energy, float((unary * y - pulled * y + y * logs).sum())
            if step and abs(energy - before) <= _STILL * abs(before):
                break
        return y
