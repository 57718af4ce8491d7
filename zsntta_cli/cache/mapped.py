"""Image features that lie in several files; only the rows that are used are read."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 4096  # rows that an iteration over all rows reads at a time
_OPEN = 128  # files that are mapped at a time: each takes a descriptor


def places_in(
    starts: NDArray[np.integer], rows: NDArray[np.integer]
) -> Iterator[tuple[int, slice | NDArray[np.integer]]]:
    """Find which of `rows` (M,) lie in each of N runs, which begin at `starts` (N + 1,).

    Give the number of each run with its places in `rows`: a slice if rows are in ascending order.
    """
    if len(rows) and (rows[1:] >= rows[:-1]).all():
        bounds = np.searchsorted(rows, starts)
        for i in np.flatnonzero(np.diff(bounds)).tolist():
            yield i, slice(bounds[i], bounds[i + 1])
        return
    run_of = np.searchsorted(starts, rows, side="right") - 1
    for i in np.flatnonzero(np.bincount(run_of)).tolist():  # np.unique would import numpy.ma
        yield i, np.flatnonzero(run_of == i)


def row_numbers(rows: slice | NDArray[Any], count: int) -> NDArray[np.integer]:
    """Turn an index of `count` rows, a slice, a mask or numbers, into row numbers from 0.

    Numbers below 0 count from the end.

    Raises:
        IndexError: there is no such row.
    """
    if isinstance(rows, slice):
        return np.arange(*rows.indices(count))
    if rows.dtype == bool:
        return np.flatnonzero(rows)
    if not len(rows) or (rows.min() >= 0 and rows.max() < count):
        return rows
    beyond = rows[(rows < -count) | (rows >= count)]
    if len(beyond):
        raise IndexError(f"index {beyond[0]} is out of bounds for {count:,} rows")
    return np.where(rows < 0, rows + count, rows)


class MappedRows:
    """Features (N, D) of several files, one below the other, as they are stored.

    Like an array it can be indexed by a slice, by row numbers or by a mask, and has a shape and a
    length. The arrays that it gives are copies.
    """

    ndim = 2

    def __init__(
        self,
        sizes: Sequence[int],
        dim: int,
        dtype: np.dtype[Any],
        map_file: Callable[[int], NDArray[np.floating]],
    ) -> None:
        """`sizes` are the numbers of rows; `map_file` maps the rows of a file, by its number."""
        self._starts = np.cumsum([0, *sizes])
        self._rows_of = lru_cache(maxsize=_OPEN)(map_file)
        self.shape, self.dtype = (int(self._starts[-1]), dim), np.dtype(dtype)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """The number of values, N times D."""
        return self.shape[0] * self.shape[1]

    def __iter__(self) -> Iterator[NDArray[np.floating]]:
        for start in range(0, len(self), _BLOCK):
            yield from self._run(start, min(start + _BLOCK, len(self)))

    def __getitem__(
        self, rows: int | slice | NDArray[np.integer] | NDArray[np.bool_]
    ) -> NDArray[np.floating]:
        if isinstance(rows, int):
            row = range(len(self))[rows]  # from the end too; IndexError beyond it
            return self._run(row, row + 1)[0]
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._run(start, max(start, stop))
        numbers = row_numbers(rows, len(self))
        features = np.empty((len(numbers), self.shape[1]), self.dtype)
        for i, here in places_in(self._starts, numbers):
            features[here] = np.asarray(self._rows_of(i))[numbers[here] - self._starts[i]]
        return features

    def _run(self, start: int, stop: int) -> NDArray[np.floating]:
        """Copy the rows from `start` to before `stop`."""
        features = np.empty((stop - start, self.shape[1]), self.dtype)
        first, last = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
        for i in range(first, last + 1) if stop > start else ():
            begin = self._starts[i]
            a, b = max(start, begin), min(stop, self._starts[i + 1])
            features[a - start : b - start] = self._rows_of(i)[a - begin : b - begin]
        return features

    def take(self, rows: NDArray[np.integer], axis: int = 0) -> NDArray[np.floating]:
        """Copy rows (M, D), by their numbers (M,)."""
        assert axis == 0, "rows alone can be taken"
        return self[rows]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("rows lie in several files: there is no array without a copy")
        return self[:].astype(dtype or self.dtype, copy=False)


StoredRows = NDArray[np.floating] | MappedRows  # image features (N, D) as a file has them
