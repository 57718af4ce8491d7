"""StatA, "Realistic Test-Time Adaptation of Vision-Language Models", CVPR 2025, arXiv 2501.03729.

A block's items are assigned to Gaussians of the classes. These are fitted to the items and held
near the class texts, more so if a class has few items. Neighbours in the block pull each other to
one class. Nothing is kept from block to block. This module follows the paper's equations; the
released code (AGPL-3.0) was not used.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from zsntta_cli.methods.classifiers.blocks import Floats
from zsntta_cli.methods.classifiers.transduction import (
    BlockClassifier,
    GaussianBlockSettings,
    neighbour_graph,
)
from zsntta_cli.methods.scores import softmax, unit


@dataclass(frozen=True)
class StatASettings(GaussianBlockSettings):
    """The settings of StatA."""


LEAST = 1e-10  # smallest variance, and smallest sum of assignments
_INNER_STEPS = 5  # assignments between two fits
_SHARPNESS = 50.0  # divisor of the log densities


class StatA(BlockClassifier):
    """StatA: Gaussians of the classes are fitted to a block and held near the texts."""

    Settings = StatASettings
    cites = ("zanella2025realistic",)
    cost = "keeps nothing between blocks; fits C Gaussians to each block, block-steps times"

    def solve(self, features: Floats, logits: Floats) -> Floats:
        """The assignments (N, C) of a block's items."""
        return solve(self.options, self.texts, spread_about_texts, fit_to_texts, features, logits)


def solve(
    options: GaussianBlockSettings,
    texts: Floats,
    spread: "Spread",
    fit: "Fit",
    features: Floats,
    logits: Floats,
) -> Floats:
    """Fit Gaussians and assign the items (N, D) of a block in turn; return assignments (N, C)."""
    frozen = np.log(np.maximum(softmax(logits), 1e-30))
    graph = neighbour_graph(features, options.block_neighbours, weighted=True)
    pull = options.block_smoothing / (2 * options.block_neighbours) * (graph + graph.T)
    z, square = softmax(logits), features**2
    start = spread(z, features, square, texts)
    gaussians = Gaussians(texts, np.tile(start + LEAST, (len(texts), 1)))
    for step in range(options.block_steps + 1):
        if step:
            gaussians = fit(z, features, square, texts, start)
        far = gaussians.log_density(features, square) / _SHARPNESS
        for _ in range(_INNER_STEPS):
            z = softmax(frozen + far + pull @ z)
    return z


@dataclass(frozen=True)
class Gaussians:
    """The mean of each class, and its variance in each dim."""

    means: Floats  # (C, D)
    variances: Floats  # (C, D)

    def log_density(self, features: Floats, square: Floats) -> Floats:
        """The log densities (N, C) of items, given with their squares (N, D), up to a constant."""
        precision = 1 / self.variances
        far = square @ precision.T - 2 * features @ (self.means * precision).T
        far += (self.means**2 * precision).sum(1) + np.log(self.variances).sum(1)
        return np.asarray(-far / 2)


# From assignments (N, C), features and squares (N, D) and texts (C, D) to the first variance (D,).
Spread = Callable[[Floats, Floats, Floats, Floats], Floats]
Fit = Callable[[Floats, Floats, Floats, Floats, Floats], Gaussians]  # from the same, and from it


def spread_about_texts(z: Floats, features: Floats, square: Floats, texts: Floats) -> Floats:
    """The mean square (D,) of the items' distances to the texts that they are assigned to."""
    squares = z.sum(0) @ texts**2 + square.sum(0) - 2 * ((z.T @ features) * texts).sum(0)
    return np.asarray(np.maximum(squares / len(z), 0))


def fit_to_texts(
    z: Floats, features: Floats, square: Floats, texts: Floats, start: Floats
) -> Gaussians:
    """Fit Gaussians by assignments (N, C); classes with few items are held near their texts."""
    count = np.bincount(z.argmax(1), minlength=len(texts))
    trust = (count / (1 + count))[:, None]
    total, drawn = z.sum(0)[:, None] + LEAST, z.T @ features
    means = unit(trust * unit(drawn) + (1 - trust) * texts)
    variances = (z.T @ square - 2 * means * drawn) / total + means**2
    anchor = start + (texts - means) ** 2
    return Gaussians(means, trust * np.maximum(variances, 0) + (1 - trust) * anchor + LEAST)
