"""Sources of images: files, folders, archives, lists, piped paths. All become `Photo`s."""

import contextlib
import glob
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.catalogue import ARCHIVES
from zsntta_cli.datasets.lists import OF_PHOTOS, found, read_list
from zsntta_cli.datasets.shards import expand_braces, is_pattern
from zsntta_cli.datasets.tree import (
    COMPRESSED,
    SUFFIXES,
    UNREADABLE,
    File,
    LeftOut,
    every_file,
)
from zsntta_cli.errors import DatasetError, SettingsError, first_line, near, short
from zsntta_cli.files import read_input

PIPE = "-"  # the source that is standard input
_ADDRESS = "it is a URL: download it, and name the file"  # a path would lose a slash of it
_LARGEST = 2**30  # bytes of a file: more is no image
_PIECE = 2**16  # bytes of a pipe at a time
_PICTURES = (b"\x89PNG\r\n", b"\xff\xd8\xff")  # how PNG and JPEG begin
# A file that is written twice within its clock's step may keep its times (FAT has steps of two
# seconds): one that was changed less than so many seconds ago is read again the next time.
_SETTLED = 4.0
# Photos as a camera's sensor has them; Pillow would read the small preview at their beginning.
_RAW = {
    ".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dng", ".erf", ".iiq", ".kdc", ".mrw", ".nef", ".nrw",
    ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf", ".srw", ".x3f",
}  # fmt: skip
_READ = SUFFIXES | {".jfif", ".jpe", ".mpo", ".apng", ".heic", ".heif", ".avif", ".jxl", ".jp2"}
_PHOTOS = _READ | _RAW  # a file with such a name has a row, if only one with an error


@dataclass(eq=False)
class Photo:
    """An image of a source: how its content is read, and what became of it."""

    source: str  # what a row calls it
    read: Callable[[], bytes]  # OSError where it cannot be read
    file: Path | None = None  # that holds it
    member: str = ""  # its path within an archive
    features: NDArray[np.floating] | None = None  # (D,) raw
    content: bytes = b""  # SHA-256 of what was read
    note: str = ""  # what was done to read it, where it is not as its file has it
    error: str = ""  # why it has no features

    @property
    def stamp(self) -> bytes:
        """What its file keeps while it is unchanged: path, size and times.

        It is empty for what is not a file, is missing, or was changed just now.
        """
        try:
            at = os.stat(self.file or "")
        except (OSError, ValueError):
            return b""
        if time.time() - max(at.st_mtime, at.st_ctime) <= _SETTLED:
            return b""
        place = os.path.abspath(self.file or "")
        times = f"{at.st_mtime_ns} {at.st_ctime_ns}"
        return os.fsencode(f"{place}\0{self.member}\0{at.st_size} {times}")

    def take(self, features: NDArray[np.floating]) -> None:
        """Take its features (D,), unless they cannot be judged."""
        if not np.isfinite(features).all():
            self.error = "its features are not finite"
        elif not np.ptp(features):
            self.error = "its features have the same value in all dimensions"
        else:
            self.features = features


def check_sources(sources: Sequence[str]) -> None:
    """Check the named sources before anything is loaded.

    Raises:
        SettingsError: a source is an address, or a second pipe.
        DatasetError: it is not there.
    """
    if sources.count(PIPE) > 1:
        raise SettingsError("'-' appears twice: standard input can be read only once.")
    if PIPE in sources and sys.stdin is None:  # another file may have its number by now
        raise SettingsError("standard input is closed: '-' has nothing to read.")
    for source in sources:
        _paths(source)


def photos_of(
    sources: Sequence[str], left_out: LeftOut, all_folders: bool = False
) -> Iterator[list[Photo]]:
    """The images of all sources in order, each once, as many at a time as are available.

    An image is identified by its file, whatever links lead there, and its place in an archive. Two
    hard links are two images. Files that are not judged are counted in `left_out`. `all_folders`
    includes hidden folders and those of systems and tools. An image that cannot be read has an
    error, or raises one when it is read.

    Raises:
        DatasetError: a source does not exist, has no image, or is a list or archive that cannot be
            read.
    """
    seen = set[tuple[str, str]]()
    for source in sources:
        of_paths = (_of_path(path, left_out, all_folders) for path in _paths(source))
        for photos in piped(_standard_input) if source == PIPE else of_paths:
            new = []
            for photo in photos:
                place = (_real_place(photo.file), photo.member) if photo.file else None
                if place in seen:
                    left_out.again += 1
                    continue
                if place:
                    seen.add(place)
                new.append(photo)
            yield new


def _real_place(file: Path) -> str:
    place = os.path.abspath(file)
    if os.path.islink(place):
        return os.path.realpath(place)
    folder, name = os.path.split(place)
    return os.path.join(_real_folder(folder), name)


_real_folder = cache(os.path.realpath)


def _paths(source: str) -> list[Path]:
    """The paths that a source stands for."""
    if source == PIPE:
        return []
    if "://" in source:
        raise SettingsError(f"'{short(source)}' is a URL: download it, and name the files.")
    path = Path(os.path.expanduser(source))
    meant = "."
    with contextlib.suppress(OSError, ValueError):  # too long a name, or a NUL in it
        if path.exists():
            return [path]
        if is_pattern(path):
            return [Path(name) for name in expand_braces(str(path))]
        if glob.has_magic(source) and (names := glob.glob(str(path), recursive=True)):
            return [Path(name) for name in sorted(names)]
        meant = near(path.name, os.listdir(path.parent)) or "."
    raise DatasetError(f"there is no file or folder {short(str(path), 200)}{meant}")


def _of_path(path: Path, left_out: LeftOut, all_folders: bool) -> list[Photo]:
    """The images of a file, a folder, an archive or a list.

    A relative path in a list is searched from the working folder, then from the list's own.
    """
    name = path.name.lower()
    if path.is_dir() or name.endswith((*ARCHIVES, *COMPRESSED)):
        if photos := list(photos_in(path, left_out, all_folders)):
            return photos
        words = left_out.words()
        raise DatasetError(
            f"no image in {path} (looked for {', '.join(sorted(_READ))})"
            f"{f'; skipped: {words}' if words else ''}."
        )
    if not name.endswith(OF_PHOTOS):
        return [of_file(path)]
    photos = []
    for named, *_ in read_list(path):
        here, beside = found(Path(), named), found(path.parent, named)
        photos.append(_named(str(path.parent / beside) if beside and not here else here or named))
    return photos


def photos_in(path: Path, left_out: LeftOut, all_folders: bool = False) -> Iterator[Photo]:
    """The images of a folder or an archive, ordered by the parts of their paths.

    Any file with the ending of an image is one, also a broken link, which raises an error when it
    is read. All other files are counted.

    Raises:
        DatasetError: a folder or the archive cannot be read, or is incomplete.
    """
    is_folder = path.is_dir()
    for file in every_file(path, all_folders):
        # exiftool keeps old pictures as .jpg_original.
        is_photo = file.ending.removesuffix("_original") in _PHOTOS
        if not is_photo or file.left_out not in ("", UNREADABLE):
            left_out.add(file, path)
        elif is_folder:
            yield of_file(path.joinpath(*file.parts))
        else:
            source = "/".join((str(path), *file.parts))
            yield Photo(source, partial(_of_member, file), path, file.id)


def of_file(path: Path) -> Photo:
    """A file as an image, whatever its content."""
    return Photo(str(path), partial(_of_file, path), path)


def _of_file(path: Path) -> bytes:
    check_readable(path)
    return read_input(path, _LARGEST)


def _of_member(file: File) -> bytes:
    check_readable(file.parts[-1])
    if file.size > _LARGEST:
        raise OSError(f"{file.size:,} bytes are too large for an image")
    return file.read()


def check_readable(name: str | Path) -> None:
    """Refuse a RAW photo and an address by their names; OSError says what to do."""
    if os.path.splitext(name)[1].lower() in _RAW:
        raise OSError("it is a RAW photo: develop it, or name the JPEG beside it")
    if "://" in str(name):
        raise OSError(_ADDRESS)


def _named(name: str) -> Photo:
    """The image that a list or a pipe names; it has an error if it cannot be a file."""
    if "\0" in name:
        error = "it is not a path"
    elif "://" in name:
        error = _ADDRESS
    elif Path(name).is_dir():
        error = "it is a folder, not an image"
    else:
        return of_file(Path(name))
    return Photo(name, bytes, error=error)


def _standard_input(most: int) -> bytes:
    try:
        return os.read(0, most)
    except OSError as error:
        raise DatasetError(f"cannot read standard input ({first_line(error)}).") from error


def piped(read: Callable[[int], bytes]) -> Iterator[list[Photo]]:
    """The images whose paths come through a pipe, as they come, on lines or separated by NULs.

    Raises:
        DatasetError: images come instead of paths.
    """
    begun, mark = b"", b""  # of the last line, what has come
    while piece := read(_PIECE):
        if not (begun or mark) and piece.startswith(_PICTURES):
            raise DatasetError("standard input has images, but '-' reads paths: name the files.")
        mark = mark or (b"\0" if b"\0" in piece else b"\n" if b"\n" in piece else b"")
        *whole, begun = (begun + piece).split(mark) if mark else (begun + piece,)
        if photos := _of_names(whole, mark):
            yield photos
    if photos := _of_names([begun], mark):
        yield photos


def _of_names(names: list[bytes], mark: bytes) -> list[Photo]:
    kept = (name if mark == b"\0" else name.rstrip(b"\r") for name in names)
    return [_named(os.fsdecode(name)) for name in kept if name.strip()]
