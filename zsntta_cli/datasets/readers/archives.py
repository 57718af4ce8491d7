"""Images from a .tar, .tar.gz or .zip: read in place, nothing is unpacked, no link is followed.

An archive is what its folder would be: the same labels, order, sample ids and digest.
"""

import gzip
import io
import stat
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

import numpy as np
from PIL import Image

from zsntta_cli.datasets.images import SUFFIXES, ImageSet
from zsntta_cli.datasets.readers.folders import by_folder, existing, folder
from zsntta_cli.errors import DatasetError, first_line

if TYPE_CHECKING:
    from indexed_gzip import IndexedGzipFile

_LARGEST = 2**30  # bytes of a member: more is no image, but a bomb
_SPACING = 2**20  # bytes between points to start from, each of which takes 32 KiB of memory
_BUFFER = 2**18  # bytes decompressed at least for a read; indexed_gzip's own 4 MiB are slow here
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Member:
    """A regular file in an archive."""

    path: str
    size: int
    offset: int = 0  # of its bytes in the (unpacked) tar; not used of a zip


Read = Callable[[Member], bytes]  # by several threads at once; OSError where it is broken


def is_archive(path: Path) -> bool:
    """Whether a path is to be read here, and not as a folder."""
    return not path.is_dir() and (path.is_file() or path.name.lower().endswith(tuple(_KINDS)))


def archive(name: str, path: Path) -> ImageSet:
    """The images of an archive: folders below the one that all images share are labels.

    Raises:
        DatasetError: not there, cut off, of another kind, without images, or with images beside
            class folders.
    """
    members, read = opened(name, path)
    found = images_among(members)
    if not found:
        raise DatasetError(f"data set '{name}': no image in {path} (looked for .jpg, .png, …).")
    places = _below_common_folder(list(found))
    labels, class_names = by_folder(name, path, places)
    return ImageSet(
        name,
        MemberImage([(read, member) for member in found.values()]),
        np.array(labels, np.int32),
        ["/".join(place) for place in places],
        class_names,
        fingerprint=",".join(str(member.size) for member in found.values()),
    )


def unpacked(name: str, root: Path, *, path: str) -> ImageSet:
    """A known set: a folder of images at `path` under the data root, or the archive it comes in.

    The archive has the name of the path's first folder, as `iNaturalist.tar.gz` has.
    """
    packed = sorted(root.glob(f"{path.partition('/')[0]}.*"))
    if packed and not (root / path).exists():
        return archive(name, packed[0])
    return folder(name, existing(root / path))


@dataclass(frozen=True)
class MemberImage:
    """Read image i of a list of members, each with what reads it."""

    members: Sequence[tuple[Read, Member]]

    def __call__(self, i: int) -> Image.Image:
        """The image, as RGB; OSError where it is broken."""
        read, member = self.members[i]
        if member.size > _LARGEST:
            raise OSError(f"{member.size:,} bytes are no image")
        with Image.open(io.BytesIO(read(member))) as image:
            return image.convert("RGB")


def opened(name: str, path: Path) -> tuple[list[Member], Read]:
    """The regular files of an archive, and what reads one of them.

    Raises:
        DatasetError: not there, cut off, or of another kind.
    """
    if not path.is_file():
        raise DatasetError(f"data set '{name}': there is no file {path}.")
    kind = next((k for k in _KINDS if path.name.lower().endswith(k)), None)
    if kind is None:
        raise DatasetError(
            f"data set '{name}': cannot read {path}: give a folder or a file with one of the "
            f"endings {', '.join(_KINDS)}."
        )
    try:
        return _KINDS[kind](path)
    except (OSError, *_BROKEN) as error:
        raise DatasetError(
            f"data set '{name}': {path} is no whole {kind} archive ({first_line(error)}): get it "
            f"again."
        ) from error


def images_among(members: Sequence[Member]) -> dict[tuple[str, ...], Member]:
    """The images by the parts of their path, sorted; of two with one path the later, as tar has it.

    Without what macOS adds, and without paths that lead out of the archive.
    """
    found = {PurePosixPath(member.path).parts: member for member in members}
    return {parts: found[parts] for parts in sorted(found) if _is_image(parts)}


def _is_image(parts: tuple[str, ...]) -> bool:
    outside = not parts or parts[0] == "/" or ".." in parts
    if outside or "__MACOSX" in parts or parts[-1].startswith("._"):
        return False
    return PurePosixPath(parts[-1]).suffix.lower() in SUFFIXES


def _below_common_folder(places: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Paths without the folders that all have in common; sorted, so the ends tell."""
    first, last, depth = places[0][:-1], places[-1][:-1], 0
    while depth < min(len(first), len(last)) and first[depth] == last[depth]:
        depth += 1
    return [place[depth:] for place in places]


def _tar(path: Path) -> tuple[list[Member], Read]:
    with path.open("rb") as file:
        return _tar_members(file), _Slice(path)


def _tar_gz(path: Path) -> tuple[list[Member], Read]:
    """With points to start from, noted while the archive is listed."""
    from indexed_gzip import IndexedGzipFile

    file = IndexedGzipFile(str(path), spacing=_SPACING, buffer_size=_BUFFER)
    members = _tar_members(file)
    while file.read(_SPACING):  # to its end, where its checksum is
        pass
    _check_end(path, file.tell())
    return members, _GzipSlice(file)


def _check_end(path: Path, size: int) -> None:
    """EOFError for what ends before its checksum: indexed_gzip checks none that is not there."""
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
            try:
                return file.read()
            finally:
                with self._lock:
                    file.close()
        except _BROKEN as error:
            raise OSError(str(error)) from error


_KINDS: dict[str, Callable[[Path], tuple[list[Member], Read]]] = {
    ".tar": _tar,
    ".tar.gz": _tar_gz,
    ".tgz": _tar_gz,
    ".zip": _zip,
}
