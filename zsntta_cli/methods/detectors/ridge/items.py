"""Items as `ridge` sees them, and the ring of the last ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.state import State

Floats = NDArray[np.float64]
Features = NDArray[np.float32]


@dataclass(frozen=True)
class RidgeItems:
    """B images as the detector sees them."""

    features: Features  # (B, D) unit norm (a zero feature stays zero)
    doubt: Floats  # (B, 3) u = 1 - MCM, entropy / log C, minus the largest logit
    top_logits: Features  # (B, K) descending
    top_classes: NDArray[np.int32]  # (B, K)
    zero_shot_noise: NDArray[np.bool_]  # (B,) whether ZS-CLIP calls it noise
    words: Floats  # (B, 2) t, and whether a word is the best match; (B, 0) without words

    def __len__(self) -> int:
        return len(self.doubt)

    def part(self, items: slice | NDArray[np.bool_]) -> "RidgeItems":
        """Some of the items."""
        return RidgeItems(*(column[items] for column in vars(self).values()))

    @classmethod
    def joined(cls, parts: Sequence["RidgeItems"]) -> "RidgeItems":
        """Join the items of several parts, in order."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return parts[0] if len(parts) == 1 else cls(*map(np.concatenate, columns))

    @classmethod
    def none(cls, count: int, dim: int, top: int, words: int) -> "RidgeItems":
        """Empty items, `count` of them, each with `top` classes and `words` word values."""
        return cls(
            np.zeros((count, dim), np.float32), np.zeros((count, 3)),
            np.zeros((count, top), np.float32), np.zeros((count, top), np.int32),
            np.zeros(count, bool), np.zeros((count, words)),
        )  # fmt: skip

    def state(self) -> State:
        """The columns by name; without words their column is left out."""
        return {name: c for name, c in vars(self).items() if name != "words" or c.shape[1]}

    @classmethod
    def restored(cls, state: State) -> "RidgeItems":
        """Make items from a state that was checked against that of other items."""
        columns: Any = {"words": np.zeros((len(np.asarray(state["doubt"])), 0)), **state}
        return cls(**columns)


def check_classes(named: NDArray[np.integer], classes: int) -> None:
    """Raise ValueError if a named class is not one of the C `classes`."""
    if named.size and not (named.min() >= 0 and named.max() < classes):
        raise ValueError(f"an item's class is none of {classes}")


class Ring:
    """The last M items; the oldest is overwritten first."""

    def __init__(self, size: int, dim: int, words: int) -> None:
        self.seen = 0
        self._all = RidgeItems.none(size, dim, 1, words)

    def add(self, items: RidgeItems) -> None:
        """Add up to M items; only the first of their classes is kept."""
        slots = np.arange(self.seen, self.seen + len(items)) % len(self._all)
        for column, new in zip(vars(self._all).values(), vars(items).values(), strict=True):
            column[slots] = new[:, : column.shape[1]] if column.ndim == 2 else new
        self.seen += len(items)

    @property
    def items(self) -> RidgeItems:
        """All items of the ring, in any order, as a view and not as a copy."""
        return self._all.part(slice(min(self.seen, len(self._all))))

    def state(self) -> State:
        """The items, and the number of all items so far."""
        return {"seen": self.seen, **self._all.state()}

    def restore(self, state: State) -> None:
        """Continue from a state that was checked against this one's."""
        self._all = RidgeItems.restored({k: v for k, v in state.items() if k != "seen"})
        self.seen = int(state["seen"])
