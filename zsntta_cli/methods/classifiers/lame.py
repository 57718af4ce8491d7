"""LAME, "Parameter-free Online Test-time Adaptation", CVPR 2022, arXiv 2201.05718.

The frozen model's probabilities of a block's items are smoothed over each item's nearest others
until they no longer change. Accuracy rises if neighbours share a class; if not, errors spread.
"""

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
class LAMESettings(BlockSettings):
    """The settings of LAME."""

    lame_neighbours: int = option(5, "Nearest other items that influence an item.", within=FROM_ONE)
    lame_strength: float = option(1.0, "λ: weight of the neighbours.", within=FROM_ZERO)
    lame_steps: int = option(100, "Largest number of steps for a block.", within=FROM_ONE)


_LEAST = 1e-10  # smallest probability
_STILL = 1e-8  # relative change of the energy at which the steps end


class LAME(BlockClassifier):
    """LAME: the probabilities of a block are smoothed over neighbouring items."""

    Settings = LAMESettings
    revision = 2
    cites = ("boudiaf2022parameter",)
    cost = "keeps nothing between blocks; multiplies a block with itself, up to lame-steps times"

    def solve(self, features: Floats, logits: Floats) -> Floats:
        """The class probabilities (N, C) of a block's items."""
        o = self.options
        graph = o.lame_strength * neighbour_graph(features, o.lame_neighbours, weighted=False)
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
