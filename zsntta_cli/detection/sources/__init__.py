"""Sources of images: files, folders, archives, lists, piped paths. All become `Item`s."""

import contextlib
import glob
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path, PurePath

from zsntta_cli.datasets.shards import expand_braces, is_pattern
from zsntta_cli.datasets.tree import (
    ARCHIVES,
    COMPRESSED,
    File,
    LeftOut,
    hidden_part,
    is_hidden,
    members,
)
from zsntta_cli.detection.sources.item import (
    LARGEST,
    PHOTOS,
    PIPE,
    Content,
    Item,
    content_of,
    failed,
    of_file,
)
from zsntta_cli.detection.sources.lists import LISTS, listed, piped
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
    if path.is_dir():
        return _not_empty(path, list(images_below(path, scan)), scan)
    name = path.name.lower()
    if name.endswith(LISTS):
        return listed(path)
    if name.endswith((*ARCHIVES, *COMPRESSED)):
        return _not_empty(path, _members(path, scan), scan)
    return [of_file(path)]


def _members(path: Path, scan: Scan) -> list[Item]:
    """The images of an archive, read in place, in the order of an unpacked folder.

    Raises:
        DatasetError: the archive cannot be read, or is incomplete.
    """
    files = {file.parts: file for file in members(path)}
    return [
        Item("/".join((str(path), *parts)), partial(_content, files[parts]), path, files[parts].id)
        for parts in sorted(files)
        if _is_judged(parts, scan)
    ]


def _is_judged(parts: tuple[str, ...], scan: Scan) -> bool:
    """Whether a member of an archive, by the parts of its path, is a picture; or it is counted."""
    *folders, name = parts
    is_left = not scan.all_folders and hidden_part(folders) is not None
    if not is_left and _is_picture(name):
        return True
    scan.left_out.add(*(parts if is_left else [name]))
    return False


def _is_picture(name: str) -> bool:
    """Whether a file is a picture by its name; a hidden one is none."""
    return not name.startswith(".") and PurePath(name).suffix.lower() in PHOTOS


def _content(file: File) -> Content:
    if file.size > LARGEST:
        raise OSError(f"{file.size:,} bytes are no image")
    return content_of(file.read())


def _not_empty(path: Path, items: list[Item], scan: Scan) -> list[Item]:
    if not items:
        suffixes = ", ".join(sorted(PHOTOS))
        left_out = scan.left_out.words()
        raise DatasetError(
            f"no image in {path} (looked for {suffixes})"
            f"{f'; left out: {left_out}' if left_out else ''}."
        )
    return items


def images_below(
    folder: Path, scan: Scan | None = None, seen: set[tuple[int, int]] | None = None
) -> Iterator[Item]:
    """The images of a folder and of the folders within, ordered by the parts of their paths.

    Hidden files, and folders of systems and tools, are left out. Links are followed, and each
    folder is listed once, except those in `seen`. A folder that cannot be listed is an item with an
    error.
    """
    scan, seen = scan or Scan(), set() if seen is None else seen
    try:
        status = folder.stat()
        if (status.st_dev, status.st_ino) in seen:
            return
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield failed(str(folder), first_line(error))
        return
    for entry in ordered:
        path = folder / entry.name
        if _is_folder(entry):
            if is_hidden(entry.name) and not scan.all_folders:
                scan.left_out.folders.add(path.parts)
            else:
                yield from images_below(path, scan, seen)
        elif _is_picture(entry.name):
            yield of_file(path)
        else:
            scan.left_out.add(entry.name)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    """Whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False
