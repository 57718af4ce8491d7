"""Data sets by name: known ones from the catalogue, any folder of images as NAME=PATH."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli import plugins
from zsntta_cli.datasets import presence
from zsntta_cli.datasets.catalogue import CATALOGUE, CORRUPTIONS, DatasetEntry
from zsntta_cli.datasets.names import HF, SetName
from zsntta_cli.errors import DatasetError, FlawedSet, IncompleteSet, first_line, near, short
from zsntta_cli.settings.prompts import DEFAULT_PROMPT

if TYPE_CHECKING:
    from zsntta_cli.datasets.images import ImageSet

__all__ = [
    "CATALOGUE",
    "default_prompt",
    "has_text",
    "known",
    "load_images",
    "look",
    "miscounted",
    "needs_no_hand",
    "partners",
    "whole_counts",
]


def load_images(
    spec: str, data_root: Path, as_shown: bool = False, as_is: bool = False
) -> "ImageSet":
    """The images of a known set, of NAME=PATH, or of the hub, as published or as shown.

    `as_is`: a known set is taken with other checksums, and without images that are missing.

    Raises:
        DatasetError: unknown name, missing or broken files.
    """
    name = SetName.parse(spec)
    again = partial(load_images, name.absolute, data_root.absolute(), as_shown, as_is)
    token = presence.AS_IS.set(as_is)
    try:
        images = _load(name, data_root)
    finally:
        presence.AS_IS.reset(token)
    if as_shown:
        from zsntta_cli.datasets import images as image_sets

        images = image_sets.as_shown(images)
    return replace(images, reload=again)


def _load(name: SetName, data_root: Path) -> "ImageSet":
    if not name.says_where:
        return _read(known(str(name)), str(name), data_root)
    if name.hub:
        return _load_from_hub(name, data_root)
    assert name.path is not None
    name.check_own(is_known=name.base in CATALOGUE)
    from zsntta_cli.datasets.class_names import names_of_folders
    from zsntta_cli.datasets.readers import archives, clip_benchmark, folders, levels, shards

    if shards.is_pattern(name.path):
        return shards.shards(name.base, name.path, name.label)
    place = levels.level_of(name.path)
    try:
        if split := clip_benchmark.split_folder(name.base, name.path):
            return clip_benchmark.web_dataset(name.base, split, name.label)
        if archives.is_archive(place.base):
            return shards.shard_or_archive(name.base, place, name.label)
        return names_of_folders(folders.folder(name.base, *place))
    except OSError as error:
        reason = first_line(error)
        raise DatasetError(f"data set '{name.base}' cannot be read ({reason}).") from error


def _load_from_hub(name: SetName, data_root: Path) -> "ImageSet":
    from zsntta_cli.datasets.class_names import names_of_folders
    from zsntta_cli.datasets.readers import clip_benchmark, hub_images

    if not name.hub.startswith(HF):
        return clip_benchmark.from_hub(name.base, name.hub, data_root)
    name.check_own(is_known=name.base in CATALOGUE)
    address = hub_images.Address.parse(name.base, name.hub)
    return names_of_folders(hub_images.hub_images(name.base, address))


def known(name: str) -> DatasetEntry:
    """The catalogue's entry of a set; of `cifar10-c:fog:1` that of `cifar10-c`.

    Raises:
        DatasetError: there is none.
    """
    if name.startswith(HF):
        raise DatasetError(f"'{short(name)}' has no name: give it one, as mine={name}.")
    parsed = SetName.parse(name)
    if parsed.hub:
        raise DatasetError(f"{name} is of the hub: zsntta datasets verify {name} fetches it.")
    if (entry := _entry(name)) is None:
        if _entry(parsed.base):
            raise DatasetError(
                f"'{short(name)}': {parsed.base} is read as it is, without ':'. Corrupted images "
                f"are those of published sets, such as cifar10-c:fog:1, or a folder, NAME=PATH."
            )
        raise DatasetError(
            f"no data set '{name}'{near(parsed.base, tuple(CATALOGUE))}: zsntta datasets list has "
            f"those that are known; a folder of images is given as NAME=PATH."
        )
    return entry


def miscounted(name: str, images: int) -> str:
    """How many images a known set has and how many it should have; nothing where that is right."""
    counts = whole_counts(name)
    return f"{images:,} of {counts[0]:,} images" if counts and images not in counts else ""


def whole_counts(name: str) -> tuple[int, ...]:
    """How many images the whole of a set is known to have, the usual count first.

    None are of built-in sets, which are drawn, as many as are asked for, and of one's own.
    """
    entry = _entry(name)
    if entry is None or not entry.layout:
        return ()
    times = 1
    if SetName.parse(name).parameters.startswith("all:"):
        times = len(CORRUPTIONS)
    return tuple(times * count for count in (entry.images, *entry.also_images))


def _entry(name: str) -> DatasetEntry | None:
    """The entry of a known set, by its name and the parameters that it has, if any."""
    parsed = SetName.parse(name)
    if parsed.base not in CATALOGUE:
        plugins.load_declared()
    entry = CATALOGUE.get(parsed.base)
    return None if entry and parsed.parameters and not entry.parameters else entry


def _read(entry: DatasetEntry, name: str, root: Path) -> "ImageSet":
    try:
        return entry.read(name, root)
    except (OSError, DatasetError) as error:
        is_ours = isinstance(error, DatasetError)
        if is_ours and not str(error).startswith("data set '"):  # of parameters, or a command
            raise
        if flaw := presence.flaw(name, entry, root, error):
            is_usable = getattr(error, "remedy", "") == presence.USABLE
            raise presence.flawed_by(name, entry, root, flaw, is_usable) from error
        if is_ours:
            raise
        gone = isinstance(error, FileNotFoundError) and error.filename
        reason = f"there is no {gone}" if gone else str(error)
        packed = " and ".join(entry.packed)
        wanted = f"{entry.layout}, or {packed}," if packed else entry.layout
        where = f"{root} ({reason})"
        raise IncompleteSet(name, where, wanted, entry.home, bool(entry.files)) from error


def look(name: str, root: Path, entry: DatasetEntry | None = None) -> presence.Presence:
    """What there is of a known set in the data root; nothing is fetched or unpacked.

    Sets with parameters are told by the names of files.

    Raises:
        DatasetError: the name is unknown.
    """
    entry = entry or known(name)
    if not entry.layout:
        return presence.Presence(presence.BUILT_IN)
    if not presence.traces(entry, root):
        return presence.Presence(presence.ABSENT)
    error = _flawed(name, root, entry)
    return presence.Presence(presence.FLAWED if error else presence.WHOLE, error)


def _flawed(name: str, root: Path, entry: DatasetEntry) -> FlawedSet | None:
    """What is wrong with a known set that lies in the data root; None where nothing is."""
    from zsntta_cli.datasets import status

    if archive := presence.still_packed(entry, root):
        return presence.flawed_by(name, entry, root, presence.packed_in(name, entry, archive))
    if entry.parameters and not SetName.parse(name).parameters:
        state = status.on_disk(entry, root)
        flaw = "" if state == status.YES else f"{state}: {entry.layout} is wanted"
    else:
        try:
            flaw = "; ".join(status.problems(_read(entry, name, root), entry))
        except FlawedSet as error:
            return error
        except DatasetError as error:
            flaw = presence.worded(error)
    return presence.flawed_by(name, entry, root, flaw) if flaw else None


def has_text(images: "ImageSet") -> bool:
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
