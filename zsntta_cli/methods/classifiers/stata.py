"""StatA, "Realistic Test-Time Adaptation of Vision-Language Models", CVPR 2025, arXiv 2501.03729.

A block's items are assigned to Gaussians of the classes. These are fitted to the items and held
near the class texts, more so if a class has few items. Neighbours in the block pull each other to
one class. Nothing is kept from block to block. This module follows the paper's equations; the
released code (AGPL-3.0) was not used.
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
class StatASettings(GaussianBlockSettings):
    """The settings of StatA."""


class StatA(GaussianBlocks):
    """StatA: Gaussians of the classes are fitted to a block and held near the texts."""

    Settings = StatASettings
    cites = ("zanella2025realistic",)
    cost = "keeps nothing between blocks; fits C Gaussians to each block, block-steps times"

    def spread(self, z: Floats, features: Floats) -> Floats:
        """The mean square (D,) of the items' distances to the texts that they are assigned to."""
        near, square = z.T @ features, (features**2).sum(0)
        squares = z.sum(0) @ self.texts**2 + square - 2 * (near * self.texts).sum(0)
        return np.asarray(np.maximum(squares / len(z), 0))

    def fit(self, z: Floats, features: Floats, start: Floats) -> Gaussians:
        """Fit Gaussians; classes with few items are held near their texts."""
        count = np.bincount(z.argmax(1), minlength=len(self.texts))
        trust = (count / (1 + count))[:, None]
        total, drawn = z.sum(0)[:, None] + LEAST, z.T @ features
        means = unit(trust * unit(drawn) + (1 - trust) * self.texts)
        variances = (z.T @ features**2 - 2 * means * drawn) / total + means**2
        anchor = start + (self.texts - means) ** 2
        return Gaussians(means, trust * np.maximum(variances, 0) + (1 - trust) * anchor + LEAST)
