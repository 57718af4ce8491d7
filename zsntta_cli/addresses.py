"""Files at addresses, https://…, s3://…, hf://… or file://…: the only module that uses fsspec."""

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import take_name, writing

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

HUB = "hf"
SCHEMES = (HUB, "file", "https", "http", "s3")
_BLOCK = 2**22  # bytes at a time


class MissingAtStore(StoreError):
    """The error for a file that a place does not have."""


def is_address(text: str) -> bool:
    """Whether a text is the address of a file, and not its path."""
    return urlsplit(text).scheme in SCHEMES and "://" in text


def file_system(address: str) -> "tuple[AbstractFileSystem, str]":
    """Find the file system of an address, and the path within it.

    Raises:
        StoreError: the library that reads the address is not installed, or it is no address.
    """
    from fsspec.core import url_to_fs

    scheme = urlsplit(address).scheme
    try:
        system, root = url_to_fs(address)
    except ImportError as error:
        raise StoreError(
            f"{scheme}:// needs a library that is not installed ({first_line(error)}): pip install "
            f"'zsntta[remote]'"
        ) from error
    except ValueError as error:
        raise StoreError(f"'{address}' cannot be read ({first_line(error)}).") from error
    return system, root.rstrip("/")


@contextmanager
def reaching(place: str) -> Iterator[None]:
    """Turn errors of a file system into one line."""
    try:
        yield
    except FileNotFoundError as error:
        cause = error.__cause__  # fsspec raises this also for a server that does not answer
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
            raise StoreError(f"cannot read {place} ({first_line(cause)}).") from error
        raise MissingAtStore(f"there is no {place}.") from error
    except StoreError:
        raise
    except Exception as error:  # each file system has errors of its own
        raise StoreError(
            f"cannot read {place} ({first_line(error) or type(error).__name__})."
        ) from error


def append(
    system: "AbstractFileSystem", path: str, target: Path, begun: int, size: int | None
) -> None:
    """Append a file's bytes from `begun` on to the `target` that has those before; 0: begin anew.

    `size` is the size of the file in bytes, if that is known.
    """
    start = begun if size is None or begun <= size else 0
    with system.open(path, "rb") as source:
        if start:
            source.seek(start)
        with target.open("ab" if start else "wb") as part:
            for block in _blocks(source, None if size is None else size - start):
                part.write(block)


def _blocks(source: IO[bytes], lacking: int | None) -> Iterator[bytes]:
    """Read blocks of an open file, up to `lacking` bytes if that is known; it may end before."""
    if lacking is None:
        yield from iter(lambda: source.read(_BLOCK), b"")
        return
    while lacking > 0 and (block := source.read(min(_BLOCK, lacking))):
        lacking -= len(block)
        yield block


def fetch_file(address: str, target: Path) -> None:
    """Fetch a file into `target`, which is absent or whole; an incomplete file is kept beside it.

    Raises:
        MissingAtStore: there is no such file.
        StoreError: the file cannot be fetched, or only a part of it came.
    """
    if target.exists():
        return
    with reaching(address):
        system, path = file_system(address)
        info = system.info(path)
        size = info.get("size")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    begun = target.with_name(f".{target.name}.{_version(info)}.begun")
    with reaching(address):
        start = begun.stat().st_size if begun.exists() and size is not None else 0
        try:
            append(system, path, begun, start, size)
        except ValueError:  # the server only sends whole files
            if not start:
                raise
            append(system, path, begun, 0, size)
    came = begun.stat().st_size
    if size is not None and came != size:
        raise StoreError(
            f"{address} ended after {came:,} of {size:,} bytes: what came is kept, and the same "
            f"command goes on."
        )
    with writing(target):
        take_name(begun, target)


def _version(info: Mapping[str, Any]) -> str:
    """A digest of what a file system says of a file's version: versions must not be mixed."""
    facts = [str(info.get(key, "")) for key in ("ETag", "etag", "LastModified", "mtime", "size")]
    return hashlib.sha256(" ".join(facts).encode()).hexdigest()[:8]


def read_text(address: str, most: int) -> bytes | None:
    """Read a small file whole; None if there is none.

    Raises:
        StoreError: the file cannot be read, or has more than `most` bytes.
    """
    try:
        with reaching(address):
            system, path = file_system(address)
            with system.open(path, "rb") as file:
                content: bytes = file.read(most + 1)
    except MissingAtStore:
        return None
    if len(content) > most:
        raise StoreError(f"{address} has more than {most:,} bytes.")
    return content


def remove_fetched(folder: Path) -> None:
    """Remove what was fetched into a folder."""
    with writing(folder):
        shutil.rmtree(folder, ignore_errors=True)
