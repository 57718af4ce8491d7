"""Rows that are being made: an array on the disk that fills, so that a stopped run goes on.

`.NAME.rows` beside the future file has its rows from the first on, and `.NAME.rows.json` says what
they are of. Rows of another encoder, other images or other batches are made again, never mixed in.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.folder import rows_path
from zsntta_cli.files import sync, write_whole, writing

KEPT = 4  # batches that are written at a time: a killed run loses at most these
_BLOCK = 2**14  # rows that are in memory at a time


def discard(path: Path) -> None:
    """Remove the rows beside a finished file; a kill at its end leaves them."""
    rows = rows_path(path)
    with writing(rows):
        for file in (rows, _said(rows)):
            file.unlink(missing_ok=True)


def _said(rows: Path) -> Path:
    return rows.with_name(f"{rows.name}.json")


class Unfinished:
    """The rows (N, D) of the file at `path`, of which the first `done` are there."""

    def __init__(
        self,
        path: Path,
        identity: Mapping[str, Any],
        shape: tuple[int, int],
        dtype: str,
        note: Callable[[str], None],
    ) -> None:
        """Take up what a stopped run of the same `identity` has made, else say so and begin anew.

        `identity` has the `batch_size`: a run goes on after the last whole batch, as features
        depend on their batch in the last bits.
        """
        self._file, self._shape, self._dtype = rows_path(path), shape, np.dtype(dtype)
        self._row = shape[1] * self._dtype.itemsize  # bytes
        said = _said(self._file)
        content = json.dumps({**identity, "shape": shape, "dtype": dtype}, sort_keys=True).encode()
        with writing(self._file):
            size = self._file.stat().st_size if self._file.exists() else 0
            if not said.exists() or said.read_bytes() != content or size > shape[0] * self._row:
                if size:
                    note(
                        f"{path.stem}: what a stopped run had finished is made again: it is of "
                        f"another encoder, --batch-size or number of threads, or of other images."
                    )
                discard(path)
                write_whole(said, content)
                size = 0
        rows, batch = size // self._row, int(identity["batch_size"])
        self.done = rows if rows == shape[0] else rows // batch * batch

    def fill(self, batches: Iterable[NDArray[np.floating]], advance: Callable[[int], None]) -> None:
        """Keep the next batches of rows (n, D); NaN stands for an image that could not be read.

        Raises:
            StoreError: they cannot be written.
        """

        def counted() -> Iterator[NDArray[np.floating]]:
            for batch in batches:
                advance(len(batch))
                yield batch

        advance(self.done)
        waiting = counted()
        while group := list(itertools.islice(waiting, KEPT)):
            rows = np.concatenate(group)
            with writing(self._file):
                with self._file.open("ab") as file:
                    file.truncate(self.done * self._row)  # half a batch, which a kill may leave
                    file.write(np.ascontiguousarray(rows, self._dtype).tobytes())
                sync(self._file)
            self.done += len(rows)

    @property
    def rows(self) -> NDArray[np.floating]:
        """All rows (N, D), as they lie on the disk."""
        assert self.done == self._shape[0]
        if not self.done:
            return np.empty(self._shape, self._dtype)
        return np.memmap(self._file, self._dtype, "r", shape=self._shape)

    def readable(self) -> NDArray[np.bool_]:
        """Which rows have features, (N,): all but those of images that could not be read."""
        return ~np.isnan(self.rows[:, 0])

    def blocks(self) -> Iterator[NDArray[np.floating]]:
        """The rows that have features, in order; at least one block."""
        rows = self.rows
        for start in range(0, max(len(rows), 1), _BLOCK):
            block = rows[start : start + _BLOCK]
            yield block[~np.isnan(block[:, 0])]
