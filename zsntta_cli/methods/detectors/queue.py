"""The items in AdaND's queue: what its next step learns from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.state import State


@dataclass(frozen=True)
class Held:
    """Items in the queue, of one piece or of several."""

    features: NDArray[np.float32]  # (B, D) raw
    score: NDArray[np.float64]  # (B,) v, each by the detector of its time
    evidence: NDArray[np.float64]  # (B,) the frozen model's log odds, weighted
    label: NDArray[np.bool_]  # (B,) pseudo-labels from ZS-CLIP
    injected: NDArray[np.bool_]  # (B,)
    sure: NDArray[np.bool_]  # (B,) whether the label is one to learn from

    @classmethod
    def joined(cls, parts: list["Held"], dim: int) -> "Held":
        """Those of several pieces; features are of `dim` dims."""
        if not parts:
            return cls(np.empty((0, dim), np.float32), *np.empty((2, 0)), *np.empty((3, 0), bool))
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return parts[0] if len(parts) == 1 else cls(*map(np.concatenate, columns))

    def state(self, has_gap: bool) -> State:
        """The columns; without a gap all labels are sure: states are as before there was one."""
        return {name: v for name, v in vars(self).items() if has_gap or name != "sure"}

    @classmethod
    def restored(cls, state: State) -> "Held":
        """From a state that was checked to be like that of another."""
        columns: dict[str, Any] = dict(state)
        return cls(**{"sure": np.ones(len(columns["score"]), np.bool_), **columns})
