"""What a cached method is given and what it returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.scores import (
    ZeroShot,
    ZeroShotDetail,
    cosine_logits,
    zero_shot_detail,
)


@dataclass(frozen=True)
class Pool:
    """All P images a stream may show, ID then OOD then noise, and the zero-shot classifier."""

    image_features: NDArray[np.float32]  # (P, D) raw, as the encoder gives them
    text_features: NDArray[np.float32]  # (C, D) unit norm
    logit_scale: float
    zero_shot: ZeroShot  # frozen CLIP's classes and noise scores of the P images
    more_text: NDArray[np.float32] | None = None  # (W, D) what else a method asked for
    more_sizes: tuple[int, ...] = ()  # rows of each word list in `more_text`, where it has several
    more_names: NDArray[np.float32] | None = None  # (C, D) class names under the words' prompt

    @cached_property
    def detail(self) -> ZeroShotDetail:
        """Entropies and largest logits of the P images, found once for a pool."""
        return zero_shot_detail(self.image_features, self.text_features, self.logit_scale)


@dataclass(frozen=True)
class StreamData:
    """A stream of T items as a method sees it: no labels, and no mark on which items are OOD."""

    pool: Pool
    index: NDArray[np.int64]  # (T,) row of each item in the pool
    injected: NDArray[np.bool_]  # (T,) items that the method itself put in: known noise
    seed: int = 0  # for what a method draws itself

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def class_index(self) -> NDArray[np.int32]:
        """Zero-shot classes (T,)."""
        return self.pool.zero_shot.class_index[self.index]

    @cached_property
    def noise_score(self) -> NDArray[np.float64]:
        """Zero-shot noise scores u = 1 - MCM, (T,)."""
        return self.pool.zero_shot.noise_score[self.index]

    def features(self, items: slice) -> NDArray[np.float32]:
        """Raw image features (B, D) of a run of items."""
        return self.pool.image_features[self.index[items]]

    def logits(self, items: slice) -> NDArray[np.float32]:
        """Zero-shot logits (B, C) of a run of items."""
        return cosine_logits(self.features(items), self.pool.text_features, self.pool.logit_scale)


@dataclass(frozen=True)
class Decisions:
    """A method's answer for all T items, injected ones included."""

    class_index: NDArray[np.int32]  # (T,) the class, should the item be clean
    is_noise: NDArray[np.bool_] | None  # (T,) None: a score without a decision rule
    id_score: NDArray[np.float64]  # (T,) higher = more ID
    zero_shot_threshold: NDArray[np.float64] | None = None  # (T,) on u, where one was found
    detector_threshold: NDArray[np.float64] | None = None  # (T,) on v, nan in stage 1

    def part(self, items: slice) -> "Decisions":
        """The answer for a run of items."""
        columns: list[Any] = [None if c is None else c[items] for c in vars(self).values()]
        return Decisions(*columns)

    @classmethod
    def joined(cls, parts: Sequence["Decisions"]) -> "Decisions":
        """One answer from those for runs of items, in order."""
        together = zip(*(vars(part).values() for part in parts), strict=True)
        columns: list[Any] = [None if c[0] is None else np.concatenate(c) for c in together]
        return cls(*columns)
