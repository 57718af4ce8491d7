"""Where images come from: files, folders, archives, lists, pipes, videos. All become `Item`s."""

import contextlib
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from zsntta_cli.datasets.readers.archives import is_archive
from zsntta_cli.datasets.readers.members import KINDS
from zsntta_cli.datasets.readers.shards import expand_braces, is_pattern
from zsntta_cli.detection.sources.folders import images_below
from zsntta_cli.detection.sources.item import PHOTOS, Item, of_file
from zsntta_cli.detection.sources.lists import LISTS, listed, piped
from zsntta_cli.detection.sources.packed import members
from zsntta_cli.errors import DatasetError, SettingsError, first_line, near, short

PIPE = "-"
VIDEOS = (".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v", ".mpg", ".mpeg", ".ts", ".ogv")


def is_stream(source: str) -> bool:
    """Whether images come in an order of their own: from a pipe or a video."""
    return source == PIPE or source.lower().endswith(VIDEOS)


def check_sources(sources: Sequence[str]) -> None:
    """Look at what is named before anything is loaded.

    Raises:
        SettingsError: an address, or a pipe twice. DatasetError: it is not there.
    """
    if sources.count(PIPE) > 1:
        raise SettingsError("'-' is there twice: standard input can be read once.")
    for source in sources:
        _whole(source)


def batches(sources: Sequence[str], fps: float) -> Iterator[list[Item]]:
    """The images of all sources in order, as many at a time as are there.

    `fps` is how many frames of a second of video are looked at.

    Raises:
        DatasetError: a source is not there, holds no image, or is a list or archive that cannot be
            read. An image that cannot be read is an item that says so.
    """
    for source in sources:
        if source == PIPE:
            yield from piped(lambda most: os.read(0, most))
            continue
        for path in _whole(source):
            yield from _of_path(path, fps)


def _whole(source: str) -> list[Path]:
    """The paths that a source stands for.

    Raises:
        SettingsError: an address. DatasetError: there is nothing.
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
            return [Path(one) for one in expand_braces(str(path))]
        if glob.has_magic(source) and (found := glob.glob(str(path), recursive=True)):
            return [Path(one) for one in sorted(found)]
    raise DatasetError(f"there is no {_missing(path)}")


def _missing(path: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        names = os.listdir(path.parent)
        return f"{short(str(path), 200)}{near(path.name, names) or '.'}"
    return f"{short(str(path), 200)}."


def _of_path(path: Path, fps: float) -> Iterable[list[Item]]:
    if path.is_dir():
        return [_some(path, list(images_below(path)))]
    name = path.name.lower()
    if name.endswith(LISTS):
        return [listed(path)]
    if name.endswith(tuple(KINDS)) and is_archive(path):
        return [_some(path, _unpacked(path))]
    if name.endswith(VIDEOS):
        from zsntta_cli.detection.sources.video import frames

        return frames(path, fps)
    return [[of_file(path)]]


def _unpacked(path: Path) -> list[Item]:
    try:
        return members(path)
    except OSError as error:
        raise DatasetError(f"cannot read {path} ({first_line(error)}).") from error


def _some(path: Path, items: list[Item]) -> list[Item]:
    if not items:
        suffixes = ", ".join(sorted(PHOTOS))
        raise DatasetError(f"no image in {path} (looked for {suffixes}).")
    return items
