"""Places where feature files are published: a hub's repository, a folder, a bucket, a server.

A place has the layout of a features folder, ENCODER/SET.h5, with index.json and README.md.
"""

import shutil
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from zsntta_cli.addresses import (
    HUB,
    SCHEMES,
    MissingAtStore,
    append,
    file_system,
    reaching,
)
from zsntta_cli.errors import StoreError
from zsntta_cli.files import whole_file

EXAMPLE = f"{HUB}://zsntta/features"  # of the embedded encoder's sets; empty until it is filled
LARGEST_TEXT = 2**25  # bytes of an index or a card


class FeaturePlace(Protocol):
    """A place where feature files are published."""

    address: str  # as it was typed, without a revision

    @property
    def revision(self) -> str | None:
        """The commit that is read; None if the place has no commits."""
        ...

    def read(self, path: str) -> bytes:
        """Read a small file whole.

        Raises:
            MissingAtStore: there is no such file.
            StoreError: the place cannot be reached.
        """
        ...

    def fetch(self, path: str, target: Path, size: int) -> None:
        """Fetch a file of `size` bytes into `target`, from the byte where an earlier attempt ended.

        Raises:
            StoreError: the file cannot be fetched; what came of it is kept.
        """
        ...

    def publish(self, folder: Path) -> str | None:
        """Upload the files of a folder, index.json last, and return the new revision, if any.

        Raises:
            StoreError: the place takes no uploads, or the upload fails.
        """
        ...


class MissingPlace(MissingAtStore):
    """The error for a place that does not exist, or that this user may not see."""


def open_store(address: str) -> FeaturePlace:
    """Open the place of an address: hf://USER/REPO[@REVISION], file:///FOLDER, https://…, s3://….

    Raises:
        StoreError: the text is no such address, or the library that reads it is not installed.
    """
    scheme = urlsplit(address).scheme
    if scheme not in SCHEMES:
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
        self._system, self._root = file_system(address)

    def read(self, path: str) -> bytes:
        """Read a small file whole: MissingAtStore if there is none."""
        with reaching(f"{self.address}/{path}"), self._system.open(self._at(path), "rb") as file:
            content: bytes = file.read(LARGEST_TEXT + 1)
        if len(content) > LARGEST_TEXT:
            raise StoreError(f"{self.address}/{path} has more than {LARGEST_TEXT:,} bytes.")
        return content

    def fetch(self, path: str, target: Path, size: int) -> None:
        """Fetch a file into `target`, from the byte where an earlier attempt ended."""
        begun = target.stat().st_size if target.exists() else 0
        with reaching(f"{self.address}/{path}"):
            try:
                append(self._system, self._at(path), target, begun, size)
            except ValueError:  # the server only sends whole files
                if not begun:
                    raise
                append(self._system, self._at(path), target, 0, size)

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
        with reaching(f"{self._scheme}://{place}"):  # object stores take a file whole or not at all
            self._system.put_file(str(file), place)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"
