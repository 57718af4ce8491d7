"""Rows appended to a file, so that a stopped run can resume: image features, and features of words.

The file begins with what its rows depend on. Rows that depend on anything else are made again and
never mixed in. An incomplete last row, which a killed process may leave, is cut off.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.files import sync, write_whole, writing

KEPT = 4  # batches that are written at a time, and that a killed run loses at most
_ALIGNED = 64  # bytes; rows start at a multiple of it


class Unfinished:
    """The rows (n, D) in a file; only the first `done` are valid."""

    def __init__(self, file: Path, of: Mapping[str, Any], width: int, dtype: str) -> None:
        """Resume with the existing rows of D = `width` numbers if they also depend on `of`."""
        head = json.dumps({**of, "width": width, "dtype": dtype}, sort_keys=True).encode()
        self._head = head + b" " * (-len(head) % _ALIGNED)
        self._file, self._width, self._dtype = file, width, np.dtype(dtype)
        self._row = width * self._dtype.itemsize  # bytes
        size, start = 0, b""
        if file.exists():
            with writing(file), file.open("rb") as begun:
                size, start = file.stat().st_size, begun.read(len(self._head))
        self._is_begun, self.has_others = start == self._head, start not in (b"", self._head)
        self.done = (size - len(self._head)) // self._row if self._is_begun else 0

    def append(self, rows: NDArray[np.floating]) -> None:
        """Write rows (n, D) after the valid ones, replacing anything else.

        Raises:
            StoreError: they cannot be written.
        """
        with writing(self._file):
            if not self._is_begun:
                write_whole(self._file, self._head)
                self._is_begun = True
            with self._file.open("ab") as file:
                file.truncate(len(self._head) + self.done * self._row)
                file.write(np.ascontiguousarray(rows, self._dtype).tobytes())
            sync(self._file)
        self.done += len(rows)

    def fill(self, batches: Iterable[NDArray[np.floating]], advance: Callable[[int], None]) -> None:
        """Write the next batches of rows (n, D), several at a time.

        Raises:
            StoreError: they cannot be written.
        """
        advance(self.done)
        group: list[NDArray[np.floating]] = []
        for batch in batches:
            advance(len(batch))
            group.append(batch)
            if len(group) == KEPT:
                self.append(np.concatenate(group))
                group.clear()
        if group:
            self.append(np.concatenate(group))

    @property
    def rows(self) -> NDArray[np.floating]:
        """The valid rows (n, D), as stored on disk."""
        shape = self.done, self._width
        if not self.done:
            return np.empty(shape, self._dtype)
        return np.memmap(self._file, self._dtype, "r", len(self._head), shape)
