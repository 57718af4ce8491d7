"""Zero-shot scores: pure functions of logits (N, C) or features. A higher score means more ID.

MCM is from "Delving into Out-of-Distribution Detection with Vision-Language Representations",
arXiv 2211.13445. Thresholds are found from the noise score u = 1 - MCM.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_CHUNK = 1024  # rows in one product: it limits memory
_SMALL = 2**20  # multiplications: BLAS may add up a smaller product in another order
_FEW = 8  # number of classes below which rows are multiplied one by one
_DEAR = 2**17  # numbers in the text features above which padding takes a third of a millisecond
TOP = 5  # largest logits that are kept: with all C no result of cull changes by 0.2 points


class Rows:
    """Image features of several files, one below the other, converted to float32 on demand.

    Like an array it can be indexed by a slice or by row numbers, and has a shape and a length.
    """

    def __init__(
        self, parts: Sequence[NDArray[np.floating]], factors: Sequence[float] = ()
    ) -> None:
        """`parts` are features (N, D); `factors` are numbers by which each part is multiplied."""
        self._parts, self._factors = parts, np.array(factors or [1] * len(parts), np.float32)
        self._dtype = np.result_type(*parts)
        self._starts = np.cumsum([0, *map(len, parts)])
        self._numbers = np.arange(self._starts[-1])
        self.shape = len(self._numbers), parts[0].shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def in_order(self, order: NDArray[np.int64]) -> "Rows":
        """The rows whose numbers are `order`."""
        rows = copy.copy(self)
        rows._numbers = self._numbers[order]
        rows.shape = len(order), self.shape[1]
        return rows

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> NDArray[np.float32]:
        numbers = self._numbers[rows]
        stored = np.empty((len(numbers), self.shape[1]), self._dtype)
        part_of = np.searchsorted(self._starts, numbers, side="right") - 1
        for i in np.flatnonzero(np.bincount(part_of)).tolist():
            here = part_of == i
            stored[here] = self._parts[i].take(numbers[here] - self._starts[i], axis=0)
        features = stored.astype(np.float32, copy=False)
        return features if (self._factors == 1).all() else features * self._factors[part_of, None]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("rows are made when asked for: there is no array without a copy")
        return self[:].astype(dtype or np.float32, copy=False)


@dataclass(frozen=True)
class ZeroShot:
    """The frozen model's predicted classes and noise scores of N images."""

    class_index: NDArray[np.int32]  # (N,) argmax over the ID classes
    noise_score: NDArray[np.floating]  # (N,) u = 1 - MCM in [0, 1), higher = more noise


def unit(features: NDArray[np.floating]) -> NDArray[Any]:
    """Features (..., D) scaled to unit norm; a zero feature stays zero."""
    return features / np.maximum(np.linalg.norm(features, axis=-1, keepdims=True), 1e-12)


def cosine_logits(
    features: NDArray[np.floating], text_features: NDArray[np.float32], logit_scale: float
) -> NDArray[np.float32]:
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
    product: NDArray[np.float32] = (padded @ text_features.T)[: len(images)]
    return product


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """The softmax over C classes of logits (..., C), in their precision."""
    powers: NDArray[Any] = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def mcm(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Maximum concept matching, Eq. 1: the largest softmax value of each row, (N,)."""
    return 1 / np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)


def energy(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Minus the free energy at temperature 1 (arXiv 2010.03759): log Σ exp(logit) of each row."""
    top = logits.max(axis=1)
    return top + np.log(np.exp(logits - top[:, None]).sum(axis=1))


def max_logit(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """The largest logit of each row (arXiv 1911.11132), (N,)."""
    return logits.max(axis=1)


def logit_gap(logits: NDArray[np.float32], others: int) -> NDArray[np.float32]:
    """The largest logit of each row minus the mean of the next `others` (arXiv 2510.20134), (N,).

    With one class this is the logit itself.
    """
    count = min(others, logits.shape[1] - 1)
    if count < 1:
        return max_logit(logits)
    top = -np.partition(-logits, count, axis=1)[:, : count + 1]
    largest = top.max(axis=1)
    gap: NDArray[np.float32] = largest - (top.sum(axis=1) - largest) / count
    return gap


@dataclass(frozen=True)
class ZeroShotDetail:
    """How certain the frozen model is of N images: entropies, and the largest logits."""

    entropy: NDArray[np.float64]  # (N,) of the softmax over C classes, divided by log C: in [0, 1]
    top_logits: NDArray[np.float32]  # (N, K) the K = min(5, C) largest logits, descending
    top_classes: NDArray[np.int32]  # (N, K) their classes; the first is the zero-shot class

    def part(self, items: slice | NDArray[np.integer]) -> "ZeroShotDetail":
        """The detail of some of the images."""
        return ZeroShotDetail(self.entropy[items], self.top_logits[items], self.top_classes[items])


T = TypeVar("T", ZeroShot, ZeroShotDetail)


def zero_shot(
    features: NDArray[np.floating] | Rows, text_features: NDArray[np.float32], logit_scale: float
) -> ZeroShot:
    """Classify N raw image features (N, D) by C text features (C, D) and score their noise."""
    return _joined([*map(_scored, _in_chunks(features, text_features, logit_scale))])


def zero_shot_detail(
    features: NDArray[np.floating] | Rows, text_features: NDArray[np.float32], logit_scale: float
) -> ZeroShotDetail:
    """Compute how certain the frozen model is of N raw image features (N, D) among C classes."""
    return _joined([*map(_looked_at, _in_chunks(features, text_features, logit_scale))])


def zero_shot_and_detail(
    features: NDArray[np.floating] | Rows, text_features: NDArray[np.float32], logit_scale: float
) -> tuple[ZeroShot, ZeroShotDetail]:
    """Compute `zero_shot` and `zero_shot_detail` of N raw image features from the same logits."""
    chunks = _in_chunks(features, text_features, logit_scale)
    scores, details = zip(*((_scored(x), _looked_at(x)) for x in chunks), strict=True)
    return _joined(scores), _joined(details)


def _in_chunks(
    features: NDArray[np.floating] | Rows, text: NDArray[np.float32], scale: float
) -> Iterator[NDArray[np.float32]]:
    """The logits of consecutive rows; of no row too, so that there is a chunk."""
    for start in range(0, max(len(features), 1), _CHUNK):
        yield cosine_logits(features[start : start + _CHUNK], text, scale)


def _joined(parts: Sequence[T]) -> T:
    columns: Any = map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True))
    return type(parts[0])(*columns)


def _scored(logits: NDArray[np.float32]) -> ZeroShot:
    classes = logits.argmax(axis=1).astype(np.int32)
    return ZeroShot(classes, (1 - mcm(logits)).astype(np.float64))


def _looked_at(logits: NDArray[np.float32]) -> ZeroShotDetail:
    shares = (entropy(logits) / np.log(max(logits.shape[1], 2))).astype(np.float64)
    top = _largest(logits, min(TOP, logits.shape[1]))
    return ZeroShotDetail(shares, np.take_along_axis(logits, top, axis=1), top.astype(np.int32))


def entropy(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """The entropy (N,) in nats of the softmax of (N, C) logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    total = powers.sum(axis=1)
    nats: NDArray[np.float32] = np.log(total) - (powers * shifted).sum(axis=1) / total
    return np.maximum(nats, 0)


def _largest(logits: NDArray[np.float32], kept: int) -> NDArray[np.intp]:
    """The columns (N, kept) of the largest logits, descending; equal ones are in column order.

    They are found one by one, because argmax breaks ties as it does for the zero-shot class.
    """
    remaining, rows = logits.copy(), np.arange(len(logits))
    columns = np.empty((len(logits), kept), np.intp)
    for k in range(kept):
        columns[:, k] = remaining.argmax(axis=1)
        remaining[rows, columns[:, k]] = -np.inf
    return columns
