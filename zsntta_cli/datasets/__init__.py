"""Data sets by name: known ones from the catalogue, any folder of images as NAME=PATH."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli import plugins
from zsntta_cli.datasets.catalogue import CATALOGUE, CORRUPTIONS, DatasetEntry, Reader
from zsntta_cli.datasets.names import HF, SetName
from zsntta_cli.errors import DatasetError, ZsnttaError, first_line, first_of, near, short
from zsntta_cli.progress import ConsoleReporter
from zsntta_cli.settings.prompts import DEFAULT_PROMPT

if TYPE_CHECKING:
    from zsntta_cli.datasets.images import ImageSet

__all__ = [
    "CATALOGUE",
    "default_prompt",
    "has_text",
    "is_there",
    "known",
    "load_images",
    "miscounted",
    "needs_no_hand",
    "partners",
    "whole_counts",
]


def load_images(spec: str, data_root: Path, as_shown: bool = False) -> "ImageSet":
    """The images of a known set, of NAME=PATH, or of the hub, as published or as shown.

    Raises:
        DatasetError: unknown name, missing or broken files.
    """
    from zsntta_cli.datasets import images as image_sets

    name = SetName.parse(spec)
    if name.says_where:
        images = _own(name, data_root)
    else:
        images = _read(_known(name), str(name), name.base, data_root)
    return image_sets.as_shown(images) if as_shown else images


def _own(name: SetName, data_root: Path) -> "ImageSet":
    """The images of a folder, an archive, a list, of the tars of a web data set, or of the hub."""
    from zsntta_cli.datasets import hub, lists, shards, tree
    from zsntta_cli.datasets.class_names import names_of_folders
    from zsntta_cli.datasets.known_sets import folder_set

    is_repository = bool(name.hub) and not name.hub.startswith(HF)
    if not is_repository:
        name.check_own(is_known=name.base in CATALOGUE)
    base, path = name.base, name.path
    try:
        if is_repository:
            return hub.web_repository(base, name.hub, data_root)
        if path is None:
            return names_of_folders(hub.hub_images(base, name.hub))
        if lists.is_list(path):
            return names_of_folders(lists.list_set(base, path, name.label))
        tars = shards.shard_paths(path)
        if tars or name.label or (not path.is_dir() and shards.is_shard(tree.files_in(path))):
            return names_of_folders(shards.web_dataset(base, tars or [path], name.label))
        images = names_of_folders(folder_set(base, path))
        if path.is_dir() and (unused := lists.unused_list(path)):
            way = f"{unused} has labels that are not read: --dataset {base}={unused} takes them"
            images = replace(images, notes=[*images.notes, way])
        return images
    except DatasetError as error:
        raise DatasetError(f"data set '{base}': {error}") from error
    except OSError as error:
        raise DatasetError(f"data set '{base}' cannot be read ({first_line(error)}).") from error


def known(name: str) -> DatasetEntry:
    """The catalogue's entry of a set; of `cifar10-c:fog:1` that of `cifar10-c`.

    Raises:
        DatasetError: there is none.
    """
    parsed = SetName.parse(name)
    if parsed.hub:
        raise DatasetError(f"{name} is of the hub: zsntta datasets verify {name} fetches it.")
    return _known(parsed)


def _known(name: SetName) -> DatasetEntry:
    if str(name).startswith(HF):
        raise DatasetError(f"'{short(str(name))}' has no name: give it one, as mine={name}.")
    if entry := _entry(name):
        return entry
    if name.base in CATALOGUE:
        raise DatasetError(
            f"'{short(str(name))}': {name.base} is read as it is, without ':'. Corrupted images "
            f"are those of published sets, such as cifar10-c:fog:1, or a folder, NAME=PATH."
        )
    raise DatasetError(
        f"no data set '{name}'{near(name.base, tuple(CATALOGUE))}: zsntta datasets list has "
        f"those that are known; a folder of images is given as NAME=PATH."
    )


def _entry(name: SetName) -> DatasetEntry | None:
    """The entry of a known set, by its name and the parameters that it has, if any."""
    if name.base not in CATALOGUE:
        plugins.load_declared()
    entry = CATALOGUE.get(name.base)
    return None if entry and name.parameters and not entry.parameters else entry


def miscounted(name: str, images: int) -> str:
    """How many images a known set has and how many it should have; nothing where that is right."""
    counts = whole_counts(name)
    return f"{images:,} of {counts[0]:,} images" if counts and images not in counts else ""


def whole_counts(name: str) -> tuple[int, ...]:
    """How many images the whole of a set is known to have, the usual count first.

    None are of built-in sets, which are drawn, as many as are asked for, and of one's own.
    """
    parsed = SetName.parse(name)
    entry = _entry(parsed)
    if entry is None or not entry.layout:
        return ()
    times = len(CORRUPTIONS) if parsed.parameters.startswith("all:") else 1
    return tuple(times * count for count in (entry.images, *entry.also_images))


def _read(entry: DatasetEntry, name: str, base: str, root: Path) -> "ImageSet":
    """Read a known set; what comes alone and at once is fetched, if it is not there.

    Raises:
        DatasetError: it is not there, or not whole: what was expected where, what is there, and
            where to get it.
    """
    if entry.parameters:
        from zsntta_cli.datasets import corruptions

        corruptions.parameters(name)
    if not isinstance(entry.read, Reader) or not entry.layout:
        return entry.read(name, root)
    try:
        if entry.downloads:
            from zsntta_cli.datasets import download

            download.fetch_lacking(base, entry, root)
        images = entry.read(name, root)
        return replace(images, notes=[*images.notes, *_differing(entry, root)])
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # scipy, torchvision and json raise what they like
        if isinstance(error, ZsnttaError) and not isinstance(error, DatasetError):
            raise
        fetching = f"zsntta datasets get {base} fetches it from "
        packed = f" or {' and '.join(entry.packed)}" if entry.packed else ""
        raise DatasetError(
            f"data set '{name}' is not whole in {root} ({_reason(error)}): wanted is "
            f"{entry.layout}{packed}; {fetching if entry.files else 'it is to be had from '}"
            f"{entry.home}: "
            "name the folder of all sets with --data-root"
        ) from error


def _reason(error: Exception) -> str:
    """Why a known set cannot be read; of a path that is not there, what is there instead."""
    if isinstance(error, NotImplementedError) and "7.3" in str(error):  # of scipy's loadmat
        return "a .mat file of MATLAB 7.3: save it again with -v7"
    if not (isinstance(error, FileNotFoundError) and error.filename):
        line = str(error) if isinstance(error, DatasetError) else first_line(error)
        return line.removesuffix(".")
    path = Path(error.filename)
    above = next((parent for parent in path.parents if parent.is_dir()), None)
    names = sorted(p.name for p in above.iterdir() if p.name[0] != ".") if above else []
    return f"there is no {path}" + (f"; {above} has {first_of(names)}" if names else "")


def _differing(entry: DatasetEntry, root: Path) -> Iterator[str]:
    """What to say of a file that is read where it lies, and is not the published one."""
    for file in entry.files:
        path, (kind, _, published) = root / file.file, file.checksum.partition(":")
        if published and not file.unpacks and entry.place(root) == path:
            status = path.stat()
            if (found := _checksum(path, kind, status.st_size, status.st_mtime_ns)) != published:
                yield f"{path} is not the published file: its {kind} is {found}, not {published}"


@cache
def _checksum(path: Path, kind: str, _size: int, _mtime: int) -> str:
    """The checksum of a file, worked out once for all corruptions of an archive."""
    with path.open("rb") as file, ConsoleReporter().waiting(lambda: f"checking {path}"):
        return hashlib.file_digest(file, kind).hexdigest()


def has_text(images: "ImageSet") -> bool:
    """Whether the set's class names are embedded: ID sets and labelled folders."""
    entry = _entry(SetName.parse(images.name))
    return bool(images.class_names) and (entry is None or entry.role != "ood")


def default_prompt(name: str) -> str:
    """The prompt template of a set used as ID."""
    entry = _entry(SetName.parse(name))
    return entry.prompt if entry else DEFAULT_PROMPT


def needs_no_hand(name: str) -> bool:
    """Whether a known set is built in or downloaded where it is not on disk."""
    entry = CATALOGUE[name]
    return entry.downloads or not entry.layout


def is_there(name: str, root: Path) -> bool:
    """Whether a known set is built in, or something of it lies in the data root."""
    entry = known(name)
    return not entry.layout or entry.place(root) is not None


def partners(name: str) -> tuple[str, ...]:
    """The OOD sets that an ID set is paired with; none for a set the paper does not know."""
    entry = _entry(SetName.parse(name))
    return entry.partners if entry else ()
