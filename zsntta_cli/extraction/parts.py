"""The unfinished work of an extraction: finished parts beside the future feature file.

A part is a run of consecutive images, encoded; like the feature file it is absent or whole. Parts
belong to one identity (encoder, source, batch size); parts of another identity are removed, never
mixed in.
"""

import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from zsntta_cli.cache.folder import lock_path, parts_path
from zsntta_cli.cache.identity import difference
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import write_whole, writing


@contextmanager
def locked(path: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Lock a feature file for this process; note it if another process has to be waited for."""
    with writing(path):
        lock = _lock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            note(f"{path} is being extracted by another process: waiting.")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Lock a feature file for this process; False if another process has locked it."""
    with writing(path):
        lock = _lock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield False
            return
    try:
        yield True
    finally:
        lock.release()


def _lock(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(lock_path(path))


def discard_parts(path: Path) -> None:
    """Remove the parts of a complete feature file, which a kill at its end leaves."""
    _remove(parts_path(path))


def _remove(folder: Path) -> None:
    with writing(folder):
        if folder.exists():
            shutil.rmtree(folder)


def equal_parts(images: range, size: int) -> tuple[Sequence[range], dict[str, int]]:
    """Parts of `size` images each, the last one maybe smaller, and their identity."""
    parts = [images[i : i + size] for i in range(0, len(images), size)]
    return parts, {"first": images.start, "part_size": size}


class Parts:
    """The parts of the extraction of some images."""

    def __init__(
        self,
        path: Path,
        identity: Mapping[str, Any],
        ranges: Sequence[range],
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Remove parts of another identity, and report that to `note`."""
        self._folder, self._ranges = parts_path(path), ranges
        identity_file = self._folder / "identity.json"
        expected = dict(identity)
        content = json.dumps(expected, sort_keys=True).encode()
        if not identity_file.exists() or identity_file.read_bytes() != content:
            if any(self._folder.glob("*.npz")):
                what = _describe_change(identity_file, expected)
                note(f"{path.stem}: what a stopped run had finished is made again ({what}).")
            self.discard()
            write_whole(identity_file, content)

    def missing(self) -> list[range]:
        """The images of each part that has to be encoded."""
        return [rows for rows in self.all() if not self._file(rows).exists()]

    def write(
        self, rows: range, features: NDArray[np.floating], readable: NDArray[np.bool_]
    ) -> None:
        """Keep one part: the features of its readable images, and which images these are."""
        content = io.BytesIO()
        np.savez(content, features=features, readable=readable)
        write_whole(self._file(rows), content.getvalue())

    def readable(self) -> NDArray[np.bool_]:
        """Which images have features, (N,): all except those skipped as broken."""
        parts = [self._load(rows)[1] for rows in self.all()]
        return np.concatenate([np.empty(0, bool), *parts])

    def blocks(self) -> Iterator[NDArray[np.floating]]:
        """The features of all parts in order, a part at a time."""
        return (self._load(rows)[0] for rows in self.all())

    def discard(self) -> None:
        """Remove all parts."""
        _remove(self._folder)

    def all(self) -> list[range]:
        """The images of each part, in order."""
        return [*self._ranges]

    def _file(self, rows: range) -> Path:
        return self._folder / f"{rows.start:09d}.npz"

    def _load(self, rows: range) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
        """The features of a part, and which of its images have some."""
        path = self._file(rows)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as part:
                features, readable = part["features"], part["readable"]
            whole = (readable.shape, features.ndim, len(features)) == (
                (len(rows),), 2, int(readable.sum()),
            )  # fmt: skip
            if not whole or features.dtype.kind != "f" or readable.dtype != bool:
                raise ValueError(f"arrays {features.shape} and {readable.shape}")
        except Exception as error:  # of a damaged part NumPy and zipfile raise nearly anything
            raise StoreError(
                f"the part {path} is broken ({first_line(error)}): delete it, the same command "
                f"makes it again."
            ) from error
        return features, readable


def _describe_change(identity_file: Path, expected: Mapping[str, Any]) -> str:
    """Which parts of the identity have changed."""
    try:
        before = json.loads(identity_file.read_bytes())
        flat = [{**identity, **identity["encoder"]} for identity in (before, expected)]
        mismatch = difference(flat[0], flat[1], [key for key in flat[1] if key != "encoder"])
    except (OSError, ValueError, TypeError, KeyError):
        mismatch = None
    if mismatch is None:
        return "made by another version"
    if mismatch.key in ("part_size", "batch_size"):
        return "another --batch-size changes the last bits of features"
    return f"{mismatch.key}: {mismatch.one}, now {mismatch.other}"
