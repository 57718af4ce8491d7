"""A block of items at a time, all of them together: what StatA, TransCLIP and LAME have in common.

An item is classified with those that came before and after it in its block of N items, so that its
class is known up to N - 1 items later: they look ahead, by so much and no more.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Floats, Frozen, blocks
from zsntta_cli.methods.settings import ALL_ITEMS, BlockSettings

# Unit features (N, D) and logits (N, C) of items to their probabilities (N, C).
Solver = Callable[[Floats, Floats], Floats]


def classes_by_block(
    data: StreamData, options: BlockSettings, offered: NDArray[np.bool_], solve: Solver
) -> NDArray[np.int32]:
    """Classes (T,), block by block; those of items that are not taken are the frozen model's.

    `offered` (T,): the items that a detector calls clean. Injected noise is never taken.
    """
    taken = ~data.injected if options.block_takes == ALL_ITEMS else offered
    class_index = data.class_index.copy()
    for part in blocks(len(data), options.block):
        rows = np.flatnonzero(taken[part])
        if len(rows):
            frozen = Frozen.of(data, part)
            probability = solve(frozen.features[rows], frozen.logits[rows])
            class_index[part][rows] = probability.argmax(axis=1)
    return class_index


def nearest_others(features: Floats, count: int) -> tuple[NDArray[np.intp], Floats]:
    """The `count` nearest other items of each, by cosine: which (N, k), and the cosines (N, k)."""
    cosines = features @ features.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : min(count, len(features) - 1)]
    return nearest, np.take_along_axis(cosines, nearest, axis=1)


def neighbour_graph(features: Floats, count: int, weighted: bool) -> Floats:
    """Weights (N, N) of each item's nearest others: their cosines, or 1. Not symmetric."""
    nearest, cosines = nearest_others(features, count)
    weights = np.zeros((len(features), len(features)))
    np.put_along_axis(weights, nearest, cosines if weighted else 1.0, axis=1)
    return weights
