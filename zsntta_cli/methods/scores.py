"""Zero-shot scores: pure functions of logits (N, C) or features. A higher score means more ID.

MCM is from "Delving into Out-of-Distribution Detection with Vision-Language Representations",
arXiv 2211.13445. Thresholds are found from the noise score u = 1 - MCM.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_CHUNK = 1024  # rows in one product: it limits memory
_SMALL = 2**20  # multiplications: BLAS may add up a smaller product in another order
_FEW = 8  # number of classes below which rows are multiplied one by one
_DEAR = 2**17  # numbers in the text features above which padding takes a third of a millisecond
CLIP_NORM = np.float32(10)  # that features of unit norm get: about that of raw ones of ViT-B
TOP = 5  # largest logits that are kept: with all C no result of cull changes by 0.2 points

Floats = NDArray[np.float64]
Features = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Columns:
    """A dataclass whose fields are arrays with a row for each item, or None."""

    def part(self, rows: slice | NDArray[np.integer]) -> Self:
        """The columns of some of the items."""
        columns = dict(vars(self))
        for name, column in columns.items():
            columns[name] = None if column is None else column[rows]
        return replace(self, **columns)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The columns of consecutive parts of a stream, in order."""
        columns = dict(vars(parts[0]))
        for name, first in columns.items():
            if first is not None:
                columns[name] = np.concatenate([*map(attrgetter(name), parts)])
        return cls(**columns)


def unit(features: NDArray[np.floating]) -> NDArray[Any]:
    """Features (..., D) scaled to unit norm; a zero feature stays zero."""
    return features / np.maximum(np.linalg.norm(features, axis=-1, keepdims=True), 1e-12)


def cosine_logits(
    features: NDArray[np.floating], text_features: Features, logit_scale: float
) -> Features:
    """The scaled cosines (N, C) of raw image features (N, D) and unit text features (C, D).

    A row's result may depend on the number of rows beside it, but only in its last bits. With
    BLAS's kernels for AVX-512 and at most 2**17 numbers in the text features (256 classes of 512
    dims) it does not depend on them at all. A zero feature gets zero logits.
    """
    images = features.astype(np.float32)
    images *= np.float32(logit_scale) / np.maximum(
        np.linalg.norm(images, axis=1, keepdims=True), 1e-12
    )
    # BLAS has other kernels for small products and for single rows, so rows of zeros are added. For
    # few classes these would be too many, and for many classes the product would be slow.
    if len(text_features) < _FEW:
        return np.stack([np.vecdot(images, text) for text in text_features], axis=1)
    least = max(2, _SMALL // text_features.size + 1)
    if len(images) >= least or text_features.size > _DEAR:
        return images @ text_features.T
    padded = np.zeros((least, images.shape[1]), np.float32)
    padded[: len(images)] = images
    product: Features = (padded @ text_features.T)[: len(images)]
    return product


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """The softmax over C classes of logits (..., C), in their precision."""
    powers: NDArray[Any] = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    """1 / (1 + exp(-x)), of x below -80 as of -80: single precision can hold it."""
    return 1 / (1 + np.exp(np.minimum(-x, 80)))


def mcm(logits: Features) -> Features:
    """Maximum concept matching, Eq. 1: the largest softmax value of each row, (N,)."""
    return 1 / np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)


def energy(logits: Features) -> Features:
    """Minus the free energy at temperature 1 (arXiv 2010.03759): log Σ exp(logit) of each row."""
    top = logits.max(axis=1)
    return top + np.log(np.exp(logits - top[:, None]).sum(axis=1))


def max_logit(logits: Features) -> Features:
    """The largest logit of each row (arXiv 1911.11132), (N,)."""
    return logits.max(axis=1)


def logit_gap(logits: Features, others: int) -> Features:
    """The largest logit of each row minus the mean of the next `others` (arXiv 2510.20134), (N,).

    With one class this is the logit itself.
    """
    count = min(others, logits.shape[1] - 1)
    if count < 1:
        return max_logit(logits)
    top = -np.partition(-logits, count, axis=1)[:, : count + 1]
    largest = top.max(axis=1)
    gap: Features = largest - (top.sum(axis=1) - largest) / count
    return gap


def entropy(logits: Features) -> Features:
    """The entropy (N,) in nats of the softmax of (N, C) logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    total = powers.sum(axis=1)
    nats: Features = np.log(total) - (powers * shifted).sum(axis=1) / total
    return np.maximum(nats, 0)


@dataclass(frozen=True, eq=False)
class ZeroShot(Columns):
    """What the frozen model says of N images."""

    class_index: NDArray[np.int32]  # (N,) argmax over the ID classes
    noise_score: Floats  # (N,) u = 1 - MCM in [0, 1), higher = more noise
    entropy: Floats  # (N,) of the softmax over C classes, divided by log C: in [0, 1]
    top_logits: Features  # (N, K) the K = min(5, C) largest logits, descending
    top_classes: NDArray[np.int32]  # (N, K) their classes; the first is the zero-shot class


def zero_shot(
    features: NDArray[np.floating], text_features: Features, logit_scale: float
) -> ZeroShot:
    """Classify N raw image features (N, D) by C text features (C, D), and score their noise."""
    parts, classes = list[ZeroShot](), len(text_features)
    for block in blocks(len(features)):
        logits = cosine_logits(features[block], text_features, logit_scale)
        rows, remaining = np.arange(len(logits)), logits.copy()
        top = np.empty((len(logits), min(TOP, classes)), np.int32)
        for k in range(top.shape[1]):  # one by one: argmax breaks ties as it does for the class
            top[:, k] = remaining.argmax(axis=1)
            remaining[rows, top[:, k]] = -np.inf
        noise_score = (1 - mcm(logits)).astype(np.float64)
        shares = (entropy(logits) / np.log(max(classes, 2))).astype(np.float64)
        top_logits = np.take_along_axis(logits, top, axis=1)
        parts.append(ZeroShot(top[:, 0], noise_score, shares, top_logits, top))
    return ZeroShot.joined(parts)


def blocks(total: int, size: int = _CHUNK) -> Iterator[slice]:
    """Cut items into consecutive blocks of at most `size`; no items are one block of none."""
    for start in range(0, max(total, 1), size):
        yield slice(start, min(start + size, total))
