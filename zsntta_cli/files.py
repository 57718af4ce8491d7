"""Files that are absent or whole, whatever happens while they are written."""

import contextlib
import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zsntta_cli.errors import StoreError, first_line


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failing write (full disk, no permission) into one clear line."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises RuntimeError where a flush fails
        reason = getattr(error, "strerror", None) or first_line(error)
        raise StoreError(f"cannot write {path}: {reason}. What was finished is kept.") from error


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which takes the name `path` once it is finished and durable.

    Raises:
        StoreError: it cannot be written; what was at `path` before is still there.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            _sync(temporary)
            os.replace(temporary, path)
            _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


class Sink(io.FileIO):
    """A file that takes whatever is written, and keeps the error where there was no room for it.

    For HDF5, which does not outlive a failed write: what it does later crashes the process.
    """

    error: OSError | None = None

    def write(self, content: Any) -> int:
        """All of the bytes, as far as the writer is told."""
        done = 0
        try:
            while self.error is None and done < len(content):
                done += super().write(content[done:])
        except OSError as error:
            self.error = error
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        """The size asked for, as far as the caller is told."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0


def sha256(path: Path) -> str:
    """The digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
