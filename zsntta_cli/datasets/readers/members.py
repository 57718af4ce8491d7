"""Members of a .tar or a .zip, and what reads one of them where it lies."""

import stat
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Member:
    """A regular file in an archive."""

    path: str
    size: int
    offset: int = 0  # of its bytes in the tar; not used of a zip


Read = Callable[[Member], bytes]  # by several threads at once; OSError where it is broken


def _tar(path: Path) -> tuple[list[Member], Read]:
    with path.open("rb") as file:
        return _tar_members(file), _Slice(path)


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
    ".zip": _zip,
}
COMPRESSED = (".tar.gz", ".tgz")  # endings of what is unpacked before it is read
