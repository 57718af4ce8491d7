"""Sources of images: files, folders, archives, lists, piped paths. All become `Item`s."""

import contextlib
import glob
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from zsntta_cli.datasets.lists import ENDINGS as LISTS
from zsntta_cli.datasets.shards import expand_braces, is_pattern
from zsntta_cli.datasets.tree import (
    ARCHIVES,
    CLOSED,
    COMPRESSED,
    UNREADABLE,
    File,
    LeftOut,
    every_file,
)
from zsntta_cli.detection.sources.item import (
    LARGEST,
    PHOTOS,
    PIPE,
    RAW,
    Content,
    Item,
    check_not_raw,
    content_of,
    of_file,
)
from zsntta_cli.detection.sources.lists import listed, piped
from zsntta_cli.errors import DatasetError, SettingsError, first_line, near, short


def check_sources(sources: Sequence[str]) -> None:
    """Check the named sources before anything is loaded.

    Raises:
        SettingsError: a source is an address, or a second pipe.
        DatasetError: it is not there.
    """
    if sources.count(PIPE) > 1:
        raise SettingsError("'-' is there twice: standard input can be read once.")
    if PIPE in sources and sys.stdin is None:  # its number may be another file's by now
        raise SettingsError("standard input is closed: nothing comes for '-'.")
    for source in sources:
        _whole(source)


@dataclass(frozen=True)
class Scan:
    """How sources are searched for images."""

    left_out: LeftOut = field(default_factory=LeftOut)  # counts what is found and not judged
    all_folders: bool = False  # those of systems and tools, and hidden ones, too


@cache
def _real(folder: str) -> str:
    return os.path.realpath(folder)


def batches(sources: Sequence[str], scan: Scan | None = None) -> Iterator[list[Item]]:
    """The images of all sources in order, as many at a time as are available.

    Raises:
        DatasetError: a source does not exist, holds no image, or is a list or archive that cannot
            be read. An image that cannot be read is an item with an error.
    """
    scan, seen = scan or Scan(), set[_Identity]()
    for source in sources:
        if source == PIPE:
            for items in piped(_standard_input):
                yield _each_once(items, seen, scan)
            continue
        for path in _whole(source):
            yield _each_once(_of_path(path, scan), seen, scan)


_Identity = tuple[str, str]  # path, member of an archive


def _each_once(items: Iterable[Item], seen: set[_Identity], scan: Scan) -> list[Item]:
    """The images that are not in `seen`, by any name or link; they are added to it."""
    kept = []
    for item in items:
        identity = _identity(item)
        if identity is None or identity not in seen:
            kept.append(item)
        else:
            scan.left_out.again += 1
        if identity is not None:
            seen.add(identity)
    return kept


def _identity(item: Item) -> _Identity | None:
    """The identity of an image's file, whatever links lead there; None if there is no file.

    Two hard links are two images.
    """
    if item.file is None:
        return None
    place = os.path.abspath(item.file)
    if os.path.islink(place):
        real = os.path.realpath(place)
    else:
        folder, name = os.path.split(place)
        real = os.path.join(_real(folder), name)
    return real, item.member


def _standard_input(most: int) -> bytes:
    try:
        return os.read(0, most)
    except OSError as error:
        raise DatasetError(f"cannot read standard input ({first_line(error)}).") from error


def _whole(source: str) -> list[Path]:
    """The paths that a source stands for.

    Raises:
        SettingsError: the source is an address. DatasetError: there is nothing at the path.
    """
    if source == PIPE:
        return []
    if "://" in source:
        raise SettingsError(f"'{short(source)}' is an address: download it, and name the files.")
    path = Path(os.path.expanduser(source))
    with contextlib.suppress(OSError, ValueError):  # too long a name, or a NUL in it
        if path.exists():
            return [path]
        if is_pattern(path):
            return [Path(name) for name in expand_braces(str(path))]
        if glob.has_magic(source) and (names := glob.glob(str(path), recursive=True)):
            return [Path(name) for name in sorted(names)]
    raise DatasetError(f"there is no {_missing(path)}")


def _missing(path: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        names = os.listdir(path.parent)
        return f"{short(str(path), 200)}{near(path.name, names) or '.'}"
    return f"{short(str(path), 200)}."


def _of_path(path: Path, scan: Scan) -> list[Item]:
    name = path.name.lower()
    if path.is_dir() or name.endswith((*ARCHIVES, *COMPRESSED)):
        return _not_empty(path, list(images_in(path, scan)), scan)
    return listed(path) if name.endswith(LISTS) else [of_file(path)]


def images_in(path: Path, scan: Scan | None = None) -> Iterator[Item]:
    """The images of a folder or an archive, ordered by the parts of their paths.

    What calls itself a picture is one, also a link to nothing, whose item has an error; so is a
    folder that cannot be listed. All else is counted.

    Raises:
        DatasetError: the archive cannot be read, or is incomplete.
    """
    scan, is_folder = scan or Scan(), path.is_dir()
    for file in every_file(path, scan.all_folders):
        if file.left_out == CLOSED:
            yield Item(str(path.joinpath(*file.parts)), partial(_content, file))
        elif not _is_photo(file.ending) or file.left_out not in ("", UNREADABLE):
            scan.left_out.add(file, path)
        elif is_folder:
            yield of_file(path.joinpath(*file.parts))
        else:
            yield Item("/".join((str(path), *file.parts)), partial(_content, file), path, file.id)


def _is_photo(ending: str) -> bool:
    """Whether a file calls itself a picture; exiftool keeps old ones as .jpg_original."""
    return ending.removesuffix("_original") in PHOTOS


def _content(file: File) -> Content:
    check_not_raw(file.parts[-1])
    if file.size > LARGEST:
        raise OSError(f"{file.size:,} bytes are no image")
    return content_of(file.read())


def _not_empty(path: Path, items: list[Item], scan: Scan) -> list[Item]:
    if not items:
        suffixes = ", ".join(sorted(PHOTOS - RAW))
        left_out = scan.left_out.words()
        raise DatasetError(
            f"no image in {path} (looked for {suffixes})"
            f"{f'; left out: {left_out}' if left_out else ''}."
        )
    return items
