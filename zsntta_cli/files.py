"""Files that are absent or whole, whatever happens while they are written."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from zsntta_cli.errors import StoreError


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failing write (full disk, no permission) into one clear line."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises RuntimeError where a flush fails
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
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
