"""StatA's and TransCLIP's alternation: Gaussians are fitted to a block, then its items assigned.

Neighbours in the block pull each other to one class. Nothing is kept from block to block.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from zsntta_cli.methods.classifiers.blocks import Floats
from zsntta_cli.methods.classifiers.transduction import (
    BlockClassifier,
    BlockSettings,
    neighbour_graph,
)
from zsntta_cli.methods.method import FROM_ONE, FROM_ZERO
from zsntta_cli.methods.scores import softmax
from zsntta_cli.settings.options import option


@dataclass(frozen=True)
class GaussianBlockSettings(BlockSettings):
    """The settings that StatA and TransCLIP share, with the values of StatA's paper."""

    block_neighbours: int = option(
        3, "Nearest other items that influence an item.", within=FROM_ONE
    )
    block_smoothing: float = option(1.0, "λ: weight of the neighbours.", within=FROM_ZERO)
    block_steps: int = option(10, "Number of fits of the classes to a block.", within=FROM_ZERO)


LEAST = 1e-10  # smallest variance, and smallest sum of assignments
_INNER_STEPS = 5  # assignments between two fits
_SHARPNESS = 50.0  # divisor of the log densities


@dataclass(frozen=True)
class Gaussians:
    """The mean of each class, and its variance in each dim."""

    means: Floats  # (C, D)
    variances: Floats  # (C, D)

    def log_density(self, features: Floats) -> Floats:
        """The log densities (N, C) of items (N, D), up to a constant."""
        precision = 1 / self.variances
        far = features**2 @ precision.T - 2 * features @ (self.means * precision).T
        far += (self.means**2 * precision).sum(1) + np.log(self.variances).sum(1)
        return np.asarray(-far / 2)


class GaussianBlocks(BlockClassifier):
    """A classifier of blocks by Gaussians of the classes."""

    @abstractmethod
    def spread(self, z: Floats, features: Floats) -> Floats:
        """The first variance (D,), from assignments (N, C) and features (N, D)."""

    @abstractmethod
    def fit(self, z: Floats, features: Floats, start: Floats) -> Gaussians:
        """Fit Gaussians by assignments (N, C) of features (N, D); `start` is the first variance."""

    def solve(self, features: Floats, logits: Floats) -> Floats:
        """Fit Gaussians and assign the items in turn; return their assignments (N, C)."""
        options, z = self.options, softmax(logits)
        frozen = np.log(np.maximum(z, 1e-30))
        graph = neighbour_graph(features, options.block_neighbours, weighted=True)
        pull = options.block_smoothing / (2 * options.block_neighbours) * (graph + graph.T)
        start = self.spread(z, features)
        gaussians = Gaussians(self.texts, np.tile(start + LEAST, (len(self.texts), 1)))
        for step in range(options.block_steps + 1):
            if step:
                gaussians = self.fit(z, features, start)
            far = gaussians.log_density(features) / _SHARPNESS
            for _ in range(_INNER_STEPS):
                z = softmax(frozen + far + pull @ z)
        return z
