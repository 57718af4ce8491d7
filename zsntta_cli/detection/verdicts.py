"""What a detector says of images: arrays for many, plain values for one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

Stage = Literal["warm-up", "adapted"]
WARM_UP: Stage = "warm-up"
ADAPTED: Stage = "adapted"


@dataclass(frozen=True)
class Verdict:
    """What is said of one image."""

    source: str | None  # where it is from, if that is known
    class_name: str  # the class, should it be clean
    class_index: int
    noise: bool  # whether it belongs to none of the classes
    score: float  # higher = more noise; only scores of one stage compare
    threshold: float  # noise iff the score is above it
    stage: Stage  # "warm-up" as long as ZS-CLIP decides in the method's stead
    top: tuple[tuple[str, float], ...]  # the likeliest classes and their softmax probabilities

    @property
    def margin(self) -> float:
        """How far the score is above the threshold: above 0 for noise."""
        return self.score - self.threshold


@dataclass(frozen=True)
class Verdicts:
    """What is said of N images; goes through as `Verdict`s."""

    class_names: Sequence[str]  # (C,)
    class_index: NDArray[np.int32]  # (N,)
    noise: NDArray[np.bool_]  # (N,)
    score: NDArray[np.float64]  # (N,)
    threshold: NDArray[np.float64]  # (N,)
    adapted: NDArray[np.bool_]  # (N,) whether the method's own rule decided, and not ZS-CLIP's
    top_index: NDArray[np.int32]  # (N, K) the K = min(5, C) likeliest classes, best first
    top_score: NDArray[np.float64]  # (N, K) their softmax probabilities
    sources: Sequence[str | None] = ()  # (N,), or nothing where no image has one

    def __len__(self) -> int:
        return len(self.noise)

    def __iter__(self) -> Iterator[Verdict]:
        return map(self._one, range(len(self)))

    @overload
    def __getitem__(self, which: int) -> Verdict: ...

    @overload
    def __getitem__(self, which: slice | NDArray[np.integer] | NDArray[np.bool_]) -> "Verdicts": ...

    def __getitem__(
        self, which: int | slice | NDArray[np.integer] | NDArray[np.bool_]
    ) -> "Verdict | Verdicts":
        """One of them by its number, or some of them by a slice, numbers or a mask."""
        if isinstance(which, int | np.integer):
            return self._one(range(len(self))[which])
        rows = np.arange(len(self))[which]
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        sources = [self.sources[i] for i in rows] if self.sources else ()
        return replace(self, **columns, sources=sources)

    @property
    def margin(self) -> NDArray[np.float64]:
        """How far each score (N,) is above its threshold."""
        return self.score - self.threshold

    @property
    def rank(self) -> NDArray[np.int64]:
        """Rank (N,) of suspicion from 1, by the margin: what is called noise comes first."""
        ranks = np.empty(len(self), np.int64)
        ranks[np.argsort(-self.margin, kind="stable")] = np.arange(1, len(self) + 1)
        return ranks

    @property
    def stage(self) -> list[Stage]:
        """The stage of each (N,)."""
        return [ADAPTED if adapted else WARM_UP for adapted in self.adapted.tolist()]

    @classmethod
    def joined(cls, parts: "Sequence[Verdicts]") -> "Verdicts":
        """Those of several calls of one detector, in order; at least one call."""
        columns: Any = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS
        }
        has = any(part.sources for part in parts)
        sources = [s for p in parts for s in (p.sources or [None] * len(p))] if has else ()
        return replace(parts[0], **columns, sources=sources)

    def named(self, sources: Sequence[str | None]) -> "Verdicts":
        """The same with the images' sources (N,)."""
        return replace(self, sources=tuple(sources))

    def _one(self, i: int) -> Verdict:
        likely = zip(self.top_index[i].tolist(), self.top_score[i].tolist(), strict=True)
        class_index = int(self.class_index[i])
        return Verdict(
            self.sources[i] if self.sources else None,
            self.class_names[class_index],
            class_index,
            bool(self.noise[i]),
            float(self.score[i]),
            float(self.threshold[i]),
            ADAPTED if self.adapted[i] else WARM_UP,
            tuple((self.class_names[c], p) for c, p in likely),
        )


_COLUMNS = (
    "class_index", "noise", "score", "threshold", "adapted", "top_index", "top_score",
)  # fmt: skip
