"""The classification of whole blocks of items, which StatA, TransCLIP and LAME share.

An item is classified together with the earlier and later items of its block of N items. So its
class is known up to N - 1 items after it arrives.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Floats, Frozen, blocks
from zsntta_cli.methods.method import FROM_ONE, Classifier, MethodSettings
from zsntta_cli.settings.options import option

ALL_ITEMS, ACCEPTED = "all", "accepted"  # the items that a block classifier classifies


@dataclass(frozen=True)
class BlockSettings(MethodSettings):
    """The settings that classifiers of whole blocks of items share."""

    block: int = option(64, "Items that are classified together.", within=FROM_ONE)
    block_takes: str = option(
        ALL_ITEMS, "Items of a block that are classified together: all, or those that the "
        "detector accepts.",
        choices=(ALL_ITEMS, ACCEPTED),
    )  # fmt: skip

    @property
    def at_once(self) -> int:
        """The number of items that are classified together."""
        return self.block


class BlockClassifier(Classifier):
    """A classifier of whole blocks of items, which keeps nothing between them."""

    online = False

    def __init__(self, data: StreamData, options: BlockSettings) -> None:
        self.options = options
        self.texts = data.pool.text_features.astype(np.float64)  # (C, D) unit norm

    @abstractmethod
    def solve(self, features: Floats, logits: Floats) -> Floats:
        """The probabilities (N, C) of items, from their unit features (N, D) and logits (N, C)."""

    def classify(self, items: StreamData, offered: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Classify T items block by block; items that are left out have the frozen model's class.

        The detector calls those that are `offered` (T,) clean. Injected noise is always left out.
        """
        is_included = ~items.injected if self.options.block_takes == ALL_ITEMS else offered
        class_index = items.class_index.copy()
        for part in blocks(len(items), self.options.block):
            rows = np.flatnonzero(is_included[part])
            if len(rows):
                frozen = Frozen.of(items, part)
                probability = self.solve(frozen.features[rows], frozen.logits[rows])
                class_index[part][rows] = probability.argmax(axis=1)
        return class_index


def neighbour_graph(features: Floats, count: int, weighted: bool) -> Floats:
    """The weights (N, N) of each item's `count` nearest others by cosine: the cosines, or 1.

    They are not symmetric.
    """
    cosines = features @ features.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : min(count, len(features) - 1)]
    chosen = np.take_along_axis(cosines, nearest, axis=1) if weighted else 1.0
    weights = np.zeros((len(features), len(features)))
    np.put_along_axis(weights, nearest, chosen, axis=1)
    return weights
