"""Image features of several files, one below the other, in single precision when asked for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Rows:
    """Image features of several files, one below the other, converted to float32 on demand.

    Like an array it can be indexed by a slice or by row numbers, and has a shape and a length.
    """

    def __init__(
        self, parts: Sequence[NDArray[np.floating]], factors: Sequence[float] = ()
    ) -> None:
        """`parts` are features (N, D); `factors` are numbers by which each part is multiplied."""
        self._parts, self._factors = parts, np.array(factors or [1] * len(parts), np.float32)
        self._dtype = np.result_type(*(part.dtype for part in parts))
        self._starts = np.cumsum([0, *map(len, parts)])
        self._numbers = np.arange(self._starts[-1])
        self.shape = len(self._numbers), parts[0].shape[1]

    def __len__(self) -> int:
        return self.shape[0]

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
