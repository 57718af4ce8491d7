"""Data sets by name: known ones from the catalogue, any folder of images as NAME=PATH."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from zsntta_cli.datasets import readers
from zsntta_cli.datasets.catalogue import CATALOGUE, Entry
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.errors import DatasetError
from zsntta_cli.vocabulary import DEFAULT_PROMPT

__all__ = ["CATALOGUE", "default_prompt", "has_text", "load_images", "needs_no_hand", "partners"]


def load_images(spec: str, data_root: Path) -> ImageSet:
    """The images of a known set, or of a folder given as NAME=PATH.

    Raises:
        DatasetError: unknown name, missing or broken files.
    """
    name, _, path = spec.partition("=")
    absolute = f"{name}={Path(path).expanduser().absolute()}" if path else spec
    again = partial(load_images, absolute, data_root.absolute())
    return replace(_load(spec, data_root), reload=again)


def _load(spec: str, data_root: Path) -> ImageSet:
    name, _, path = spec.partition("=")
    if not path:
        if (entry := _entry(name)) is None:
            raise DatasetError(
                f"no data set '{name}': known are {', '.join(CATALOGUE)}; a folder of images is "
                f"given as NAME=PATH."
            )
        return _read(entry, name, data_root)
    reserved = name in CATALOGUE or name.startswith(("noise-", "words-"))
    if reserved or not re.fullmatch(r"[\w.-]+", name):
        raise DatasetError(
            f"'{name}' cannot name a folder of images: take letters, digits, '.', '_' or '-', and "
            f"no known set's name."
        )
    from zsntta_cli.datasets import archives, shards  # replays look up names, and read no archive

    place = Path(path).expanduser()
    if shards.is_pattern(place):
        return shards.shards(name, place)
    read = archives.archive if archives.is_archive(place) else readers.folder
    return read(name, place)


def _entry(name: str) -> Entry | None:
    """The entry of a known set, by its name or by `cifar10-c:fog:1`."""
    base, colon, _ = name.partition(":")
    entry = CATALOGUE.get(base)
    return None if entry and colon and not entry.parameters else entry


def _read(entry: Entry, name: str, root: Path) -> ImageSet:
    try:
        return entry.read(name, root)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError) and error.filename
        reason = f"there is no {gone}" if gone else str(error)
        raise DatasetError(
            f"data set '{name}' is not whole in {root} ({reason}): put {entry.layout} there, or "
            f"name their folder with --data-root; get it from {entry.home}."
        ) from error


def has_text(images: ImageSet) -> bool:
    """Whether the set's class names are embedded: ID sets and labelled folders."""
    entry = _entry(images.name)
    return bool(images.class_names) and (entry is None or entry.role != "ood")


def default_prompt(name: str) -> str:
    """The prompt template of a set used as ID."""
    entry = _entry(name)
    return entry.prompt if entry else DEFAULT_PROMPT


def needs_no_hand(name: str) -> bool:
    """Whether a known set is built in or downloaded where it is not on disk."""
    entry = CATALOGUE[name]
    return entry.downloads or not entry.layout


def partners(name: str) -> tuple[str, ...]:
    """The OOD sets that an ID set is paired with; none for a set the paper does not know."""
    entry = _entry(name)
    return entry.partners if entry else ()
