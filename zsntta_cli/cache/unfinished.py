"""Rows appended to a file, so that a stopped run can resume: features, words, TPT's answers.

`FILE.json` describes what the rows depend on. Rows that depend on anything else are made again,
never mixed in. An incomplete row, which a kill may leave at the end, is cut off.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.files import sync, write_whole, writing

KEPT = 4  # batches that are written at a time: a killed run loses at most these


class Unfinished:
    """The rows (n, D) in a file; only the first `done` are valid."""

    def __init__(self, file: Path, of: Mapping[str, Any], width: int, dtype: str) -> None:
        """Resume with the existing rows of D = `width` numbers if they depend on the same.

        `of` is everything that they depend on.
        """
        self._file, self._width, self._dtype = file, width, np.dtype(dtype)
        self._row = width * self._dtype.itemsize  # bytes
        self._of = json.dumps({**of, "width": width, "dtype": dtype}, sort_keys=True).encode()
        said = said_of(file)
        with writing(file):
            size = file.stat().st_size if file.exists() else 0
            self._is_begun = said.exists() and said.read_bytes() == self._of
        self.done = size // self._row if self._is_begun else 0
        self.has_others = size > 0 and not self._is_begun

    def append(self, rows: NDArray[np.floating]) -> None:
        """Write rows (n, D) after the valid ones, replacing anything else.

        Raises:
            StoreError: they cannot be written.
        """
        with writing(self._file):
            if not self._is_begun:
                discard(self._file)
                write_whole(said_of(self._file), self._of)
                self._is_begun = True
            with self._file.open("ab") as file:
                file.truncate(self.done * self._row)
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
        return np.memmap(self._file, self._dtype, "r", shape=shape)


def said_of(file: Path) -> Path:
    """The file that describes what the rows in `file` depend on."""
    return file.with_name(f"{file.name}.json")


def discard(file: Path) -> None:
    """Remove rows and their description, if they exist."""
    with writing(file):
        file.unlink(missing_ok=True)
        said_of(file).unlink(missing_ok=True)
