"""The input of a cached method and its results, for a whole stream or step by step."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods.scores import (
    Rows,
    ZeroShot,
    ZeroShotDetail,
    cosine_logits,
    zero_shot_and_detail,
    zero_shot_detail,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class MoreText:
    """The texts that a method reads besides the class names."""

    more_text: NDArray[np.float32] | None = None  # (W, D)
    more_sizes: tuple[int, ...] = ()  # rows of each word list in `more_text`, if there are several
    more_names: NDArray[np.float32] | None = None  # (C, D) class names in the words' prompt
    generic: NDArray[np.float32] | None = None  # (D,) the encoder's generic text, norm below 1
    # Whether the encoder's logits stand as far above those of any text as OpenAI's do.
    is_level_known: bool = False

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the features."""
        digest = hashlib.sha256()
        for features in (self.more_text, self.more_names, self.generic):
            if features is not None:
                digest.update(features.data)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Pool(MoreText):
    """P images and the zero-shot classifier."""

    image_features: NDArray[np.float32] | Rows  # (P, D) raw output of the encoder
    text_features: NDArray[np.float32]  # (C, D) unit norm
    logit_scale: float
    zero_shot: ZeroShot  # frozen CLIP's classes and noise scores of the P images
    known_detail: ZeroShotDetail | None = None  # if it was computed with the scores
    _whole: "tuple[Pool, NDArray[np.int64]] | None" = None  # a larger pool, and its rows of these

    def __deepcopy__(self, memo: object) -> "Pool":
        return self  # it never changes

    @classmethod
    def scored(
        cls,
        image_features: NDArray[np.float32],
        text_features: NDArray[np.float32],
        logit_scale: float,
        generic: NDArray[np.float32] | None = None,
        *,
        is_level_known: bool = False,
    ) -> "Pool":
        """Make a pool and compute the scores and the detail of its images by one product."""
        both = zero_shot_and_detail(image_features, text_features, logit_scale)
        return cls(
            image_features, text_features, logit_scale, both[0], known_detail=both[1],
            generic=generic, is_level_known=is_level_known,
        )  # fmt: skip

    def beside(self, more: MoreText) -> "Pool":
        """The same images for a method that reads more texts than the class names."""
        return replace(self, **{field.name: getattr(more, field.name) for field in fields(more)})

    def in_order(self, order: NDArray[np.int64]) -> "Pool":
        """The pool of a stream, whose item t is image `order[t]`, and of no other image.

        Its rows tell nothing of the sets that its images are from, so that a method may see it.
        """
        rows = self.image_features
        rows = (rows if isinstance(rows, Rows) else Rows([rows])).in_order(order)
        scores = self.zero_shot.class_index[order], self.zero_shot.noise_score[order]
        return replace(
            self, image_features=rows, zero_shot=ZeroShot(*scores), _whole=(self, order),
            known_detail=None,
        )  # fmt: skip

    @cached_property
    def detail(self) -> ZeroShotDetail:
        """The entropies and largest logits of the P images, computed once for a pool."""
        if self.known_detail is not None:
            return self.known_detail
        if self._whole is not None:
            pool, rows = self._whole
            return pool.detail.part(rows)
        return zero_shot_detail(self.image_features, self.text_features, self.logit_scale)


@dataclass(frozen=True)
class StreamData:
    """A stream of T items as a method sees it: without labels and without the truth on noise."""

    pool: Pool
    index: NDArray[np.int64]  # (T,) row of each item in the pool
    injected: NDArray[np.bool_]  # (T,) noise that the method itself injected
    seed: int = 0  # for the random choices of a method
    own_score: NDArray[np.float64] | None = None  # (T,) noise scores in place of the pool's

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def class_index(self) -> NDArray[np.int32]:
        """The zero-shot classes (T,)."""
        return self.pool.zero_shot.class_index[self.index]

    @cached_property
    def noise_score(self) -> NDArray[np.float64]:
        """The zero-shot noise scores u (T,): the stream's own, or 1 - MCM if it has none."""
        if self.own_score is not None:
            return self.own_score
        return self.pool.zero_shot.noise_score[self.index].astype(np.float64, copy=False)

    def features(self, items: slice) -> NDArray[np.float32]:
        """The raw image features (B, D) of consecutive items."""
        return self.pool.image_features[self.index[items]]

    def detail(self, items: slice) -> ZeroShotDetail:
        """The entropies and largest logits of consecutive items."""
        return self.pool.detail.part(self.index[items])

    def part(self, items: slice) -> "StreamData":
        """Consecutive items of the stream as a stream of their own."""
        own_score = None if self.own_score is None else self.own_score[items]
        return StreamData(self.pool, self.index[items], self.injected[items], self.seed, own_score)

    def seen_as(self, items: slice, features: NDArray[np.float32]) -> "StreamData":
        """Consecutive items with other features (B, D) and their own zero-shot scores."""
        pool, part = self.pool, self.part(items)
        scores = ZeroShot(part.class_index, part.noise_score)
        new_pool = Pool(features, pool.text_features, pool.logit_scale, scores)
        return StreamData(new_pool, np.arange(len(features)), part.injected, self.seed)

    def logits(self, items: slice, raw: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """The zero-shot logits (B, C) of consecutive items; `raw`: their features, if available."""
        raw = self.features(items) if raw is None else raw
        return cosine_logits(raw, self.pool.text_features, self.pool.logit_scale)


@dataclass(frozen=True)
class Decisions:
    """A method's decisions on all T items, including injected noise."""

    class_index: NDArray[np.int32]  # (T,) the class, if the item is clean
    is_noise: NDArray[np.bool_] | None  # (T,); None: there is no decision rule
    id_score: NDArray[np.float64]  # (T,) higher = more ID
    zero_shot_threshold: NDArray[np.float64] | None = None  # (T,) on u, if there is one
    detector_threshold: NDArray[np.float64] | None = None  # (T,) on v, nan in stage 1
    # (T,) by how many nats "one of the classes" is likelier than "any text", and the level below
    # which an image is noise by itself; nan where nothing is known; None: the method has no such.
    evidence: NDArray[np.float64] | None = None
    level: NDArray[np.float64] | None = None

    def part(self, items: slice | NDArray[np.integer]) -> "Decisions":
        """The decisions on some of the items."""
        columns: list[Any] = [None if c is None else c[items] for c in vars(self).values()]
        return Decisions(*columns)

    @classmethod
    def joined(cls, parts: Sequence["Decisions"]) -> "Decisions":
        """Join the decisions on consecutive parts of a stream, in order."""
        together = zip(*(vars(part).values() for part in parts), strict=True)
        columns: list[Any] = [None if c[0] is None else np.concatenate(c) for c in together]
        return cls(*columns)


def check_decisions(decisions: Any, name: str, items: int, classes: int) -> Decisions:
    """Check what a method returned for T items of C classes.

    Raises:
        SettingsError: a field has another type or length, or a value that no decision has; the
            message names the method, the field and the first such item.
    """

    def refuse(what: str) -> NoReturn:
        raise SettingsError(f"{name} returns {what}.")

    if not isinstance(decisions, Decisions):
        refuse(f"a {type(decisions).__name__}, must return Decisions")
    for field in fields(Decisions):
        values = getattr(decisions, field.name)
        if values is None and field.name not in ("class_index", "id_score"):
            continue
        kind, wanted = _KINDS.get(field.name, _NUMBERS)
        if not isinstance(values, np.ndarray) or values.dtype.kind not in kind:
            got = getattr(values, "dtype", type(values).__name__)
            refuse(f"{field.name} of {got}, must be an array of {wanted}")
        if values.shape != (items,):
            refuse(f"{field.name} of shape {values.shape}, must be {(items,)}, one for each item")
    index, score = decisions.class_index, decisions.id_score
    for field_name, wrong, must in (
        ("class_index", (index < 0) | (index >= classes), f"in [0, {classes})"),
        ("id_score", ~np.isfinite(score), "finite"),
    ):
        if wrong.any():
            item = int(wrong.argmax())
            value = getattr(decisions, field_name)[item]
            refuse(f"{field_name} {value} at item {item:,}, must be {must}")
    return decisions


_NUMBERS = "f", "floats"
_KINDS = {  # of NumPy's types, where they are not floats
    "class_index": ("iu", "integers"),
    "is_noise": ("b", "booleans"),
}
