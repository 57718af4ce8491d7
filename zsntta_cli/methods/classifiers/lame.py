"""LAME, "Parameter-free Online Test-time Adaptation", CVPR 2022, arXiv 2201.05718.

The frozen model's probabilities of a block's items are smoothed over each item's nearest others
until they no longer change. Accuracy rises if neighbours share a class; if not, errors spread.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Floats
from zsntta_cli.methods.classifiers.transduction import (
    BlockSettings,
    classes_by_block,
    neighbour_graph,
)
from zsntta_cli.methods.scores import softmax
from zsntta_cli.methods.settings import FROM_ONE, FROM_ZERO
from zsntta_cli.settings.options import option


@dataclass(frozen=True)
class LAMESettings(BlockSettings):
    """LAME: the probabilities of a block are smoothed over neighbouring items."""

    lame_neighbours: int = option(5, "Nearest other items that influence an item.", within=FROM_ONE)
    lame_strength: float = option(1.0, "λ: weight of the neighbours.", within=FROM_ZERO)
    lame_steps: int = option(100, "Largest number of steps for a block.", within=FROM_ONE)


_LEAST = 1e-10  # smallest probability
_STILL = 1e-8  # relative change of the energy at which the steps end


def classes(
    data: StreamData, options: LAMESettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classify T items block by block; the detector calls those that are `offered` (T,) clean."""
    return classes_by_block(data, options, offered, partial(_solve, options))


def _solve(options: LAMESettings, features: Floats, logits: Floats) -> Floats:
    """The class probabilities (N, C) of a block's items."""
    graph = options.lame_strength * neighbour_graph(
        features, options.lame_neighbours, weighted=False
    )
    y = softmax(logits)
    unary, energy = -np.log(y + _LEAST), np.inf
    for step in range(options.lame_steps):
        pulled = graph @ y
        y = softmax(pulled - unary)
        logs = np.log(np.maximum(y, 1e-20))
        before, energy = energy, float((unary * y - pulled * y + y * logs).sum())
        if step and abs(energy - before) <= _STILL * abs(before):
            break
    return y
