"""Data sets by name: known ones from the catalogue, any folder of images as NAME=PATH."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli import plugins
from zsntta_cli.datasets.catalogue import CATALOGUE, CORRUPTIONS, DatasetEntry, Reader
from zsntta_cli.datasets.names import HF, SetName
from zsntta_cli.errors import DatasetError, ZsnttaError, first_line, first_of, near, short
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
    name = SetName.parse(spec)
    if not name.says_where:
        images = _read(known(str(name)), str(name), data_root)
    else:
        if name.path or name.hub.startswith(HF):
            name.check_own(is_known=name.base in CATALOGUE)
        images = _of_hub(name, data_root) if name.hub else _own(name.base, name.path, name.label)
    if as_shown:
        from zsntta_cli.datasets import images as image_sets

        images = image_sets.as_shown(images)
    return images


def _own(name: str, path: Path | None, label: str) -> "ImageSet":
    """The images of a folder, an archive, a list, or of the tars of a web data set."""
    from zsntta_cli.datasets import lists, shards, tree
    from zsntta_cli.datasets.class_names import names_of_folders
    from zsntta_cli.datasets.known_sets import folder_set

    assert path is not None
    try:
        if lists.is_list(path):
            return names_of_folders(lists.list_set(name, path, label))
        tars = shards.shard_paths(name, path)
        if tars or label or (not path.is_dir() and shards.is_shard(tree.files_in(path))):
            return names_of_folders(shards.web_dataset(name, tars or [path], label))
        images = names_of_folders(folder_set(name, path))
        if path.is_dir() and (unused := lists.unused_list(name, path)):
            way = f"{unused} has labels that are not read: --dataset {name}={unused} takes them"
            images = replace(images, notes=[*images.notes, way])
        return images
    except OSError as error:
        raise DatasetError(f"data set '{name}' cannot be read ({first_line(error)}).") from error


def _of_hub(name: SetName, data_root: Path) -> "ImageSet":
    from zsntta_cli.datasets import hub
    from zsntta_cli.datasets.class_names import names_of_folders

    if not name.hub.startswith(HF):
        return hub.web_repository(name.base, name.hub, data_root)
    return names_of_folders(hub.hub_images(name.base, name.hub))


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
    """Read a known set.

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
        return entry.read(name, root)
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # scipy, torchvision and json raise what they like
        if isinstance(error, ZsnttaError) and not isinstance(error, DatasetError):
            raise
        fetching = f"zsntta datasets get {SetName.parse(name).base} fetches it from "
        packed = f" or {' and '.join(entry.packed)}" if entry.packed else ""
        raise DatasetError(
            f"data set '{name}' is not whole in {root} ({_reason(name, error)}): wanted is "
            f"{entry.layout}{packed}; {fetching if entry.files else 'it is to be had from '}"
            f"{entry.home}: "
            "name the folder of all sets with --data-root"
        ) from error


def _reason(name: str, error: Exception) -> str:
    """Why a known set cannot be read; of a path that is not there, what is there instead."""
    if not (isinstance(error, FileNotFoundError) and error.filename):
        line = str(error) if isinstance(error, DatasetError) else first_line(error)
        return line.removeprefix(f"data set '{name}': ").removesuffix(".")
    path = Path(error.filename)
    above = next((parent for parent in path.parents if parent.is_dir()), None)
    names = sorted(p.name for p in above.iterdir() if p.name[0] != ".") if above else []
    return f"there is no {path}" + (f"; {above} has {first_of(names)}" if names else "")


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


def is_there(name: str, root: Path) -> bool:
    """Whether a known set is built in, or something of it lies in the data root."""
    entry = known(name)
    return not entry.layout or entry.place(root) is not None


def partners(name: str) -> tuple[str, ...]:
    """The OOD sets that an ID set is paired with; none for a set the paper does not know."""
    entry = _entry(name)
    return entry.partners if entry else ()
