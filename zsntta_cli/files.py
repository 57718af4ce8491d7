"""Files that are absent or complete, whatever happens during a write; inputs of limited size.

A file is written under a name that cannot be guessed, opened exclusively and locked, and takes its
final name once it is durable. A killed writer leaves its file unlocked, and the next writer in the
folder removes it.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from zsntta_cli.errors import StoreError, first_line

_PREFIX, _SUFFIX = ".zsntta-", ".tmp"


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failed write (full disk, no permission) into a one-line error."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises RuntimeError where a flush fails
        # After a Ctrl-C amid a write, HDF5 cannot close the file, and its error hides the Ctrl-C.
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        reason = getattr(error, "strerror", None) or first_line(error)
        raise StoreError(f"cannot write {path}: {reason}. Finished work is kept.") from error


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to, which takes the name `path` once finished and durable.

    A symbolic link stays, and its target is written. An existing pipe or device also stays, and
    receives the content.

    Raises:
        StoreError: the file cannot be written; what was at `path` before is still there.
    """
    with writing(path):
        special = check_target(path)
        target = Path(os.path.realpath(path))
        folder = Path(tempfile.gettempdir()) if special else target.parent
        folder.mkdir(parents=True, exist_ok=True)
        with scratch(folder) as temporary:
            yield temporary
            if special:
                with temporary.open("rb") as content, path.open("wb", buffering=0) as sink:
                    shutil.copyfileobj(content, sink)
            else:
                take_name(temporary, target)


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file, completely or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def take_name(finished: Path, path: Path) -> None:
    """Give a finished file its final name, once its content is durable."""
    sync(finished)
    os.replace(finished, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Make the content of a file, or the entries of a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_target(path: Path) -> bool:
    """Whether the target of a write exists and is not a regular file.

    Raises:
        StoreError: it is a folder, or cannot be inspected.
    """
    with writing(path):
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            return False
        if stat.S_ISDIR(mode):
            raise StoreError(f"cannot write {path}: it is a folder.")
        return not stat.S_ISREG(mode)


@contextlib.contextmanager
def scratch(folder: Path, is_folder: bool = False) -> Iterator[Path]:
    """Make a new file or folder in a folder, and remove it at the end, unless it was renamed.

    It is locked while its writer runs. Leftovers of killed writers are removed first.
    """
    _sweep(folder)
    while True:
        path = folder / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        path.mkdir() if is_folder else path.touch(exist_ok=False)
        with contextlib.suppress(FileNotFoundError):  # it was swept before it was opened
            descriptor = os.open(path, os.O_RDONLY)
            with contextlib.suppress(OSError):  # without locks here, nobody can sweep it either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if path.exists():  # it was not swept before it was locked
                break
            os.close(descriptor)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True) if is_folder else path.unlink(missing_ok=True)
        os.close(descriptor)


def _sweep(folder: Path) -> None:
    """Remove what killed writers left: what this user has made under such a name, not locked."""
    for path in folder.glob(f"{_PREFIX}{'[0-9a-f]' * 16}{_SUFFIX}"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            finally:
                os.close(descriptor)


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; a pipe or a device may never end, or never begin.

    Raises:
        OSError: the file cannot be opened, or is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError("it is not a regular file")


def read_input(path: Path, most: int) -> bytes:
    """Read the bytes of a regular file.

    Raises:
        OSError: it cannot be read, is not a regular file, or has more than `most` bytes.
    """
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"it has more than {most:,} bytes")
    return content
