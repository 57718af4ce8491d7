"""TransCLIP, "Boosting Vision-Language Models with Transduction", NeurIPS 2024, arXiv 2406.01837.

This is the zero-shot form in StatA's paper (arXiv 2501.03729). The Gaussians share one variance,
which starts at 1 / D, and are fitted to a block's items alone; no term holds them near the texts.
"""

from dataclasses import dataclass

import numpy as np

from zsntta_cli.methods.classifiers.blocks import Floats
from zsntta_cli.methods.classifiers.stata import LEAST, Gaussians, solve
from zsntta_cli.methods.classifiers.transduction import BlockClassifier, GaussianBlockSettings
from zsntta_cli.methods.scores import unit


@dataclass(frozen=True)
class TransCLIPSettings(GaussianBlockSettings):
    """The settings of TransCLIP."""


class TransCLIP(BlockClassifier):
    """TransCLIP as in StatA's paper: Gaussians of one variance are fitted to a block alone."""

    Settings = TransCLIPSettings
    revision = 2
    cites = "zanella2024boosting", "zanella2025realistic"
    cost = "keeps nothing between blocks; fits C Gaussians to each block, block-steps times"

    def solve(self, features: Floats, logits: Floats) -> Floats:
        """The assignments (N, C) of a block's items."""
        spread = spread_of_a_unit_vector
        return solve(self.options, self.texts, spread, fit_to_items, features, logits)


def spread_of_a_unit_vector(_z: Floats, features: Floats, *_: Floats) -> Floats:
    """The same variance in each dim, 1 / D."""
    dim = features.shape[1]
    return np.full(dim, 1 / dim)


def fit_to_items(
    z: Floats, features: Floats, square: Floats, texts: Floats, _: Floats
) -> Gaussians:
    """Fit the means of all classes by assignments (N, C), and one variance."""
    drawn, total = z.T @ features, z.sum(0)[:, None]
    means = unit(drawn)
    squares = (total * means**2 - 2 * means * drawn).sum(0) + square.sum(0)
    variance = np.maximum(squares / len(features), 0) + LEAST
    return Gaussians(means, np.tile(variance, (len(texts), 1)))
