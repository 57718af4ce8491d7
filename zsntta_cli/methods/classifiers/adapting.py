"""What the frozen model says of items, and the loop over the items of a stream."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.method import Classifier
from zsntta_cli.methods.scores import softmax, unit

Floats = NDArray[np.float64]
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

    def classify(self, items: StreamData, offered: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Classify T items by their largest score; learn from those that are `offered` (T,)."""
        class_index = np.empty(len(items), np.int32)
        for part in blocks(len(items), _BLOCK):
            frozen = Frozen.of(items, part)
            probability = softmax(frozen.logits)
            entropy, label = entropy_of(probability), items.class_index[part].tolist()
            each = map(Sample, frozen.features, frozen.logits, probability, entropy, label)
            for i, (item, learn) in enumerate(zip(each, offered[part].tolist(), strict=True)):
                class_index[part.start + i] = self.scores(item, learn).argmax()
        return class_index


@dataclass(frozen=True)
class Frozen:
    """The features of B items and the frozen model's logits."""

    features: Floats  # (B, D) unit norm
    logits: Floats  # (B, C)

    @classmethod
    def of(cls, data: StreamData, part: slice) -> "Frozen":
        """Compute them for consecutive items of the stream."""
        raw = data.features(part)
        return cls(unit(raw).astype(np.float64), data.logits(part, raw).astype(np.float64))


def blocks(total: int, size: int) -> Iterator[slice]:
    """Cut the items of a stream into consecutive blocks of at most `size`."""
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def entropy_of(probability: NDArray[Any]) -> NDArray[Any]:
    """The entropies (B,) in nats of probabilities (B, C)."""
    return np.asarray(-(probability * np.log(np.maximum(probability, 1e-30))).sum(axis=-1))
