"""Blocks of items, and what the frozen model says of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.scores import softmax, unit

Floats = NDArray[np.float64]

BLOCK = 64  # items in one product: it limits memory and changes no decision


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

    @property
    def probability(self) -> Floats:
        """The softmax (B, C) of the logits."""
        return softmax(self.logits)


def blocks(total: int, size: int = BLOCK) -> Iterator[slice]:
    """Cut the items of a stream into consecutive blocks of at most `size`."""
    return (slice(start, min(start + size, total)) for start in range(0, total, size))
