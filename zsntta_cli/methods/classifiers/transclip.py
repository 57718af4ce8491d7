"""TransCLIP, "Boosting Vision-Language Models with Transduction", NeurIPS 2024, arXiv 2406.01837.

This is the zero-shot form in StatA's paper (arXiv 2501.03729). The Gaussians share one variance,
which starts at 1 / D, and are fitted to a block's items alone; no term holds them near the texts.
"""

from dataclasses import dataclass

import numpy as np

from zsntta_cli.methods.classifiers.blocks import Floats
from zsntta_cli.methods.classifiers.gaussian_blocks import (
    LEAST,
    GaussianBlocks,
    GaussianBlockSettings,
    Gaussians,
)
from zsntta_cli.methods.scores import unit


@dataclass(frozen=True)
class TransCLIPSettings(GaussianBlockSettings):
    """The settings of TransCLIP."""


class TransCLIP(GaussianBlocks):
    """TransCLIP as in StatA's paper: Gaussians of one variance are fitted to a block alone."""

    Settings = TransCLIPSettings
    revision = 2
    cites = "zanella2024boosting", "zanella2025realistic"
    cost = "keeps nothing between blocks; fits C Gaussians to each block, block-steps times"

    def spread(self, z: Floats, features: Floats) -> Floats:
        """The same variance in each dim, 1 / D, that of a unit vector."""
        del z
        return np.full(features.shape[1], 1 / features.shape[1])

    def fit(self, z: Floats, features: Floats, start: Floats) -> Gaussians:
        """Fit the means of all classes to the items alone, and one variance."""
        del start
        drawn, total = z.T @ features, z.sum(0)[:, None]
        means = unit(drawn)
        squares = (total * means**2 - 2 * means * drawn).sum(0) + (features**2).sum(0)
        variance = np.maximum(squares / len(features), 0) + LEAST
        return Gaussians(means, np.tile(variance, (len(means), 1)))
