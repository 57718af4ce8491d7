"""Data sets by name: known ones from the catalogue, any folder of images as NAME=PATH."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli import plugins
from zsntta_cli.datasets.catalogue import CATALOGUE, DatasetEntry
from zsntta_cli.datasets.names import SetName, SetParts
from zsntta_cli.errors import DatasetError, first_line, near
from zsntta_cli.settings.prompts import DEFAULT_PROMPT

if TYPE_CHECKING:
    from zsntta_cli.datasets.images import ImageSet

__all__ = [
    "CATALOGUE",
    "default_prompt",
    "has_text",
    "known",
    "load_images",
    "miscounted",
    "needs_no_hand",
    "partners",
]


def load_images(spec: str, data_root: Path, as_shown: bool = False) -> "ImageSet":
    """The images of a known set, or of a folder given as NAME=PATH, as published or as shown.

    Raises:
        DatasetError: unknown name, missing or broken files.
    """
    name = SetName.parse(spec)
    absolute = f"{name}={name.path.absolute()}" if name.path else spec
    again = partial(load_images, absolute, data_root.absolute(), as_shown)
    images = _load(name, data_root)
    if as_shown:
        from zsntta_cli.datasets import images as image_sets

        images = image_sets.as_shown(images)
    return replace(images, reload=again)


def _load(name: SetName, data_root: Path) -> "ImageSet":
    if name.path is None:
        return _read(known(str(name)), str(name), data_root)
    name.check_own(is_known=name.base in CATALOGUE)
    from zsntta_cli.datasets.images import translate_wnids
    from zsntta_cli.datasets.readers import archives, folders, shards

    if shards.is_pattern(name.path):
        return shards.shards(name.base, name.path)
    try:
        read = archives.archive if archives.is_archive(name.path) else folders.folder
        return translate_wnids(read(name.base, name.path))
    except OSError as error:
        reason = first_line(error)
        raise DatasetError(f"data set '{name.base}' cannot be read ({reason}).") from error


def known(name: str) -> DatasetEntry:
    """The catalogue's entry of a set; of `cifar10-c:fog:1` that of `cifar10-c`.

    Raises:
        DatasetError: there is none.
    """
    if (entry := _entry(name)) is None:
        raise DatasetError(
            f"no data set '{name}'{near(name, tuple(CATALOGUE))}: known are "
            f"{', '.join(CATALOGUE)}; a folder of images is given as NAME=PATH."
        )
    return entry


def miscounted(name: str, images: int) -> str:
    """How many images a known set has and how many it should have; nothing where that is right.

    The whole of several corrupted sets has multiples of the images. Built-in sets are drawn, as
    many as are asked for, and of one's own sets nothing is known.
    """
    entry = _entry(name)
    if entry is None or not entry.layout or images in (entry.images, *entry.also_images):
        return ""
    if entry.parameters and images and images % entry.images == 0:
        return ""
    return f"{images:,} of {entry.images:,} images"


def _entry(name: str) -> DatasetEntry | None:
    """The entry of a known set, by its name or by `cifar10-c:fog:1`; no set takes no parameters."""
    parsed = SetName.parse(name)
    if parsed.base not in CATALOGUE:
        plugins.load_declared()
    entry = CATALOGUE.get(parsed.base)
    return None if entry and parsed.parameters and not entry.parameters else entry


def _read(entry: DatasetEntry, name: str, root: Path) -> "ImageSet":
    try:
        return entry.read(name, root)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError) and error.filename
        reason = f"there is no {gone}" if gone else str(error)
        raise DatasetError(
            f"data set '{name}' is not whole in {root} ({reason}): put {entry.layout} there; "
            f"it is to be had from {entry.home}.",
            remedy="data-root",
        ) from error


def has_text(images: "ImageSet") -> bool:
    """Whether the set's class names are embedded: ID sets and labelled folders."""
    entry = _entry(images.name)
    return bool(images.class_names) and (entry is None or entry.role != "ood")


def default_prompt(name: str) -> str:
    """The prompt template of a set used as ID; of a part of its images, too."""
    entry = _entry(SetParts.parse(name).whole)
    return entry.prompt if entry else DEFAULT_PROMPT


def needs_no_hand(name: str) -> bool:
    """Whether a known set is built in or downloaded where it is not on disk."""
    entry = CATALOGUE[name]
    return entry.downloads or not entry.layout


def partners(name: str) -> tuple[str, ...]:
    """The OOD sets that an ID set is paired with; none for a set the paper does not know.

    A part of an ID set's images is paired with the same part of each.
    """
    parts = SetParts.parse(name)
    entry = _entry(parts.whole)
    part = name.removeprefix(parts.whole)
    return tuple(partner + part for partner in entry.partners) if entry else ()
