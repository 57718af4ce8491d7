"""Places that feature files are published at: a hub's repository, a folder, a bucket, a server.

What is at a place lies as in a features folder: ENCODER/SET.h5, with index.json and README.md.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import whole_file

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

HUB = "hf"
EXAMPLE = f"{HUB}://zsntta/features"  # of the embedded encoder's sets; empty until it is filled
_SCHEMES = (HUB, "file", "https", "http", "s3")
_BLOCK = 2**22  # bytes at a time
LARGEST_TEXT = 2**25  # bytes of an index or a card


class FeaturePlace(Protocol):
    """A place that feature files are published at."""

    address: str  # as it was typed, without a revision

    @property
    def revision(self) -> str | None:
        """The commit that is read; None where a place has none."""
        ...

    def read(self, path: str) -> bytes:
        """A small file whole.

        Raises:
            MissingAtStore: there is none.
            StoreError: the place cannot be reached.
        """
        ...

    def fetch(self, path: str, target: Path, size: int) -> None:
        """Bring a file of so many bytes to `target`, going on where an earlier attempt ended.

        Raises:
            StoreError: it cannot be had; what came is kept.
        """
        ...

    def publish(self, folder: Path) -> str | None:
        """Upload the files of a folder, index.json last; gives the new revision, if any.

        Raises:
            StoreError: the place takes nothing, or the upload fails.
        """
        ...


class MissingAtStore(StoreError):
    """A file that a place does not have."""


class MissingPlace(MissingAtStore):
    """A place that there is not, or not for everybody."""


def open_store(address: str) -> FeaturePlace:
    """The place of an address: hf://USER/REPO[@REVISION], file:///FOLDER, https://…, s3://….

    Raises:
        StoreError: no such kind of address, or the library that reads it is not installed.
    """
    scheme = urlsplit(address).scheme
    if scheme not in _SCHEMES:
        raise StoreError(
            f"'{address}' is no address of features: must be hf://USER/REPO, file:///FOLDER, "
            f"https://… or s3://BUCKET/…"
        )
    if scheme == HUB:
        from zsntta_cli.sharing.hub import HubStore

        return HubStore.at(address)
    return FolderStore(address.rstrip("/"))


class FolderStore:
    """A folder, a bucket or a web server's folder, reached through fsspec."""

    revision: str | None = None

    def __init__(self, address: str) -> None:
        self.address, self._scheme = address, urlsplit(address).scheme
        self._system, self._root = _file_system(address, self._scheme)

    def read(self, path: str) -> bytes:
        """A small file whole: MissingAtStore where there is none."""
        with _reaching(f"{self.address}/{path}"), self._system.open(self._at(path), "rb") as file:
            content: bytes = file.read(LARGEST_TEXT + 1)
        if len(content) > LARGEST_TEXT:
            raise StoreError(f"{self.address}/{path} has more than {LARGEST_TEXT:,} bytes.")
        return content

    def fetch(self, path: str, target: Path, size: int) -> None:
        """Bring a file to `target`, from the byte where an earlier attempt ended."""
        begun = target.stat().st_size if target.exists() else 0
        with _reaching(f"{self.address}/{path}"):
            try:
                self._append(path, target, begun, size)
            except ValueError:  # of a server that sends whole files alone
                if not begun:
                    raise
                self._append(path, target, 0, size)

    def _append(self, path: str, target: Path, begun: int, size: int) -> None:
        """Write a file from some byte on behind what there is of it; from 0 on: anew."""
        start = begun if begun <= size else 0
        with self._system.open(self._at(path), "rb") as source:
            if start:
                source.seek(start)
            with target.open("ab" if start else "wb") as part:
                for block in _blocks(source, size - start):
                    part.write(block)

    def publish(self, folder: Path) -> str | None:
        """Upload the files of a folder, index.json last, each whole or not at all."""
        if self._scheme in ("http", "https"):
            raise StoreError(
                f"{self.address} takes no uploads: push to hf://USER/REPO, file:///FOLDER or "
                f"s3://BUCKET/…"
            )
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for file in sorted(files, key=lambda path: path.name == "index.json"):
            self._put(file, self._at(file.relative_to(folder).as_posix()))
        return None

    def _put(self, file: Path, place: str) -> None:
        if self._scheme == "file":
            with whole_file(Path(place)) as temporary:
                shutil.copyfile(file, temporary)
            return
        with _reaching(f"{self._scheme}://{place}"):  # object stores take a file whole or not
            self._system.put_file(str(file), place)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"


def _blocks(source: IO[bytes], lacking: int) -> Iterator[bytes]:
    """At most so many bytes of an open file; it may end before."""
    while lacking > 0 and (block := source.read(min(_BLOCK, lacking))):
        lacking -= len(block)
        yield block


def _file_system(address: str, scheme: str) -> "tuple[AbstractFileSystem, str]":
    """The file system of an address, and the path within it."""
    from fsspec.core import url_to_fs

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
def _reaching(place: str) -> Iterator[None]:
    """Turn what a file system raises into one line."""
    try:
        yield
    except FileNotFoundError as error:
        raise MissingAtStore(f"there is no {place}.") from error
    except StoreError:
        raise
    except Exception as error:  # each file system has errors of its own
        raise StoreError(
            f"cannot read {place} ({first_line(error) or type(error).__name__})."
        ) from error
