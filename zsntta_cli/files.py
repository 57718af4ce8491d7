"""Files that are absent or whole, whatever happens while they are written; inputs that end.

A file is written under a name that cannot be guessed, opened exclusively and locked, and takes its
own name once it is durable. A killed writer leaves it unlocked: the next one in the folder sweeps.
"""

import contextlib
import fcntl
import hashlib
import io
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError, StoreError, first_line

_PREFIX, _SUFFIX = ".zsntta-", ".tmp"
_OWN_FOLDER = re.compile(r"\.zsntta-[0-9a-f]{16}\.tmp")


def checked_path(value: str | Path, what: str) -> Path:
    """A path that a caller gives, as one that the system takes.

    Raises:
        SettingsError: it has a NUL, at which the system's own paths end.
    """
    if "\0" in str(value):
        raise SettingsError(f"{what} is {str(value)!r}: a path has no NUL.")
    return Path(value)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failing write (full disk, no permission) into one clear line."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises RuntimeError where a flush fails
        if isinstance(error.__context__, KeyboardInterrupt):  # HDF5 cannot close what it broke off
            raise error.__context__ from None
        reason = getattr(error, "strerror", None) or first_line(error)
        raise StoreError(f"cannot write {path}: {reason}. What was finished is kept.") from error


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which takes the name `path` once it is finished and durable.

    A symbolic link stays, and what it names is written. What exists and is no regular file (a pipe,
    a device) stays too, and gets the content.

    Raises:
        StoreError: it cannot be written; what was at `path` before is still there.
    """
    with writing(path):
        special = check_target(path)
        target = Path(os.path.realpath(path))
        folder = Path(tempfile.gettempdir()) if special else target.parent
        folder.mkdir(parents=True, exist_ok=True)
        with scratch_file(folder) as temporary:
            yield temporary
            if special:
                with temporary.open("rb") as content, path.open("wb", buffering=0) as sink:
                    shutil.copyfileobj(content, sink)
            else:
                take_name(temporary, target)


def take_name(finished: Path, path: Path) -> None:
    """Give a finished file the name that it was written for, once it is durable."""
    sync(finished)
    os.replace(finished, path)
    sync(path.parent)


def check_target(path: Path) -> bool:
    """Whether what is to be written exists and is no regular file.

    Raises:
        StoreError: it is a folder, or cannot be looked at.
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
def scratch_file(folder: Path, mode: int = 0o666) -> Iterator[Path]:
    """A new file in a folder, gone at the end; what killed writers left there is swept.

    `mode`: who may read and write it from its first moment, less what the umask takes.
    """
    sweep(folder)
    with _temporary(folder, mode) as path:
        yield path


@contextlib.contextmanager
def _temporary(folder: Path, mode: int = 0o666) -> Iterator[Path]:
    """A new file, locked as long as its writer lives, gone at the end unless it was renamed."""
    path, descriptor = _create_temporary(folder, mode)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _create_temporary(folder: Path, mode: int) -> tuple[Path, int]:
    while True:
        path = folder / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        with contextlib.suppress(OSError):  # a file system without locks: nobody can sweep either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.exists():  # not swept before it was locked
            return path, descriptor
        os.close(descriptor)


@contextlib.contextmanager
def scratch_folder(folder: Path) -> Iterator[Path]:
    """A new folder in a folder, gone at the end unless it was renamed; see `scratch_file`."""
    sweep(folder)
    path, descriptor = _create_folder(folder)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _create_folder(folder: Path) -> tuple[Path, int]:
    while True:
        path = folder / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        path.mkdir()
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if path.exists():  # not swept before it was locked
                return path, descriptor
            os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove what killed writers left behind: one's own temporary files that nobody has locked."""
    for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                status = os.fstat(descriptor)
                is_folder = stat.S_ISDIR(status.st_mode) and bool(_OWN_FOLDER.fullmatch(path.name))
                is_own = status.st_uid == os.geteuid()
                if is_own and (is_folder or stat.S_ISREG(status.st_mode)):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path) if is_folder else path.unlink()
            finally:
                os.close(descriptor)


class Sink(io.FileIO):
    """A file that takes whatever is written, and keeps the error where there was no room for it.

    For HDF5, which does not outlive a failed write: what it does later crashes the process.
    """

    error: OSError | None = None

    def write(self, content: Any) -> int:
        """Write all of the bytes, as far as the writer is told."""
        done = 0
        try:
            while self.error is None and done < len(content):
                done += super().write(content[done:])
        except OSError as error:
            self.error = error
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, as far as the caller is told."""
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


def sync(path: Path) -> None:
    """Make the content of a file, or the entries of a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_regular(path: Path) -> int:
    """A descriptor of a regular file, for reading: a pipe or device may never end, or never begin.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError("it is no regular file")


def input_size(path: Path) -> int:
    """Bytes of a regular file that can be read: OSError where it is none."""
    with os.fdopen(open_regular(path), "rb") as file:
        return os.fstat(file.fileno()).st_size


def read_input(path: Path, most: int) -> bytes:
    """The bytes of a regular file.

    Raises:
        OSError: it cannot be read, is something else, or has more than `most` bytes.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"it has more than {most:,} bytes")
    return content
