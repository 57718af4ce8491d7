"""Members of a .tar, .tar.gz or .zip, and what reads one of them where it lies."""

import gzip
import io
import stat
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from indexed_gzip import IndexedGzipFile

_SPACING = 2**20  # bytes between points to start from, each of which takes 32 KiB of memory
_BUFFER = 2**18  # bytes decompressed at least for a read; indexed_gzip's own 4 MiB are slow here
BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Member:
    """A regular file in an archive."""

    path: str
    size: int
    offset: int = 0  # of its bytes in the (unpacked) tar; not used of a zip


Read = Callable[[Member], bytes]  # by several threads at once; OSError where it is broken


def _tar(path: Path) -> tuple[list[Member], Read]:
    with path.open("rb") as file:
        return _tar_members(file), _Slice(path)


def _tar_gz(path: Path) -> tuple[list[Member], Read]:
    """List a .tar.gz, and note points to start reading from; ImageNet-V2's is a plain tar."""
    if not _is_gzip(path):
        return _tar(path)
    from indexed_gzip import IndexedGzipFile

    file = IndexedGzipFile(str(path), spacing=_SPACING, buffer_size=_BUFFER)
    members = _tar_members(file)
    while file.read(_SPACING):  # to its end, where its checksum is
        pass
    _check_end(path, file.tell())
    return members, _GzipSlice(file)


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _check_end(path: Path, size: int) -> None:
    """Raise EOFError for what ends before its checksum: indexed_gzip checks none that is gone."""
    with path.open("rb") as file:
        file.seek(-4, io.SEEK_END)
        if file.read() == (size % 2**32).to_bytes(4, "little"):
            return
    with gzip.open(path) as whole:  # cut off, or made of several parts, each with a size
        while whole.read(_SPACING):
            pass


def _tar_members(file: IO[bytes]) -> list[Member]:
    """The regular files of a tar.

    Raises:
        tarfile.TarError: not a tar, or one that ends before its end mark.
    """
    members = []
    with tarfile.open(fileobj=file, mode="r:", encoding="utf-8") as tar:
        while (entry := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined] # or it keeps them all
            if entry.isreg() and not entry.issparse():
                members.append(Member(entry.name, entry.size, entry.offset_data))
        file.seek(tar.offset)  # tarfile takes a cut between two members for the end
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"cut off or damaged at byte {tar.offset:,}")
    return members


@dataclass(frozen=True)
class _Slice:
    """Read a stretch of a file; a handle for each, so that threads share no position."""

    path: Path

    def __call__(self, member: Member) -> bytes:
        with self.path.open("rb", buffering=0) as file:
            file.seek(member.offset)
            return file.read(member.size)


@dataclass(frozen=True)
class _GzipSlice:
    """Read a stretch of what is compressed; one thread at a time, its `pread` sees to that."""

    file: "IndexedGzipFile"

    def __call__(self, member: Member) -> bytes:
        try:
            return bytes(self.file.pread(member.size, member.offset))
        except ValueError as error:
            raise OSError(str(error)) from error


def _zip(path: Path) -> tuple[list[Member], Read]:
    reader = _ZipReader(path)
    return reader.members(), reader


class _ZipReader:
    """Members of a zip; several threads decompress at once."""

    def __init__(self, path: Path) -> None:
        self._path, self._zip, self._lock = path, zipfile.ZipFile(path), threading.Lock()

    def __reduce__(self) -> tuple[type["_ZipReader"], tuple[Path]]:
        return _ZipReader, (self._path,)

    def members(self) -> list[Member]:
        """The regular files."""
        files = [info for info in self._zip.infolist() if not info.is_dir()]
        links = [stat.S_ISLNK(info.external_attr >> 16) for info in files]
        return [
            Member(info.filename, info.file_size)
            for info, link in zip(files, links, strict=True)
            if not link
        ]

    def __call__(self, member: Member) -> bytes:
        try:
            with self._lock:  # zipfile counts its readers without one
                file = self._zip.open(member.path)
                is_whole = member.size == self._zip.getinfo(member.path).file_size
            try:
                return file.read() if is_whole else file.read(member.size)
            finally:
                with self._lock:
                    file.close()
        except BROKEN as error:
            raise OSError(str(error)) from error


KINDS: dict[str, Callable[[Path], tuple[list[Member], Read]]] = {
    ".tar": _tar,
    ".tar.gz": _tar_gz,
    ".tgz": _tar_gz,
    ".zip": _zip,
}
