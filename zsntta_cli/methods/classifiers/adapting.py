"""What the frozen model says of items, and the loop over the items of a stream."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.method import Classifier
from zsntta_cli.methods.scores import Floats, Mask, blocks, softmax, unit

_BLOCK = 64  # items in one product: it limits memory and changes no decision


class Sample(NamedTuple):
    """One item as the frozen model sees it."""

    feature: Floats  # (D,) unit norm
    logits: Floats  # (C,)
    probability: Floats  # (C,) softmax of the logits
    entropy: float  # of the probability, in nats
    label: int  # the zero-shot class


class Adapting(Classifier):
    """A classifier that learns from the items of a stream, one after another."""

    @abstractmethod
    def scores(self, item: Sample, learn: bool) -> Floats:
        """Score the C classes for an item, and learn from it if it is to be learned."""

    def classify(self, items: StreamData, offered: Mask) -> NDArray[np.int32]:
        """Classify T items by their largest score; learn from those that are `offered` (T,)."""
        class_index = list[Any]()
        for block in blocks(len(items), _BLOCK):
            features, logits = frozen(items, block)
            probability = softmax(logits)
            entropy, label = entropy_of(probability), items.class_index[block].tolist()
            each = zip(features, logits, probability, entropy, label, strict=True)
            for row, learn in zip(each, offered[block].tolist(), strict=True):
                class_index.append(self.scores(Sample(*row), learn).argmax())
        return np.array(class_index, np.int32)


def frozen(items: StreamData, block: slice) -> tuple[Floats, Floats]:
    """The unit features (B, D) of consecutive items, and the frozen model's logits (B, C)."""
    return unit(items.features(block)).astype(np.float64), items.logits(block).astype(np.float64)


def entropy_of(probability: NDArray[Any]) -> NDArray[Any]:
    """The entropies (B,) in nats of probabilities (B, C)."""
    return np.asarray(-(probability * np.log(np.maximum(probability, 1e-30))).sum(axis=-1))
