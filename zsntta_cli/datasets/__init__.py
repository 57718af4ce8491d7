"""Data sets by name: known ones from the catalogue, and your own as NAME=PATH."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli import plugins
from zsntta_cli.datasets.catalogue import CATALOGUE, CORRUPTIONS, DatasetEntry, Reader
from zsntta_cli.datasets.names import DATASET, HF, SetName
from zsntta_cli.errors import (
    DatasetError,
    SettingsError,
    StoreError,
    first_line,
    first_of,
    near,
    short,
)
from zsntta_cli.progress import ConsoleReporter
from zsntta_cli.settings.prompts import DEFAULT_PROMPT

if TYPE_CHECKING:
    from zsntta_cli.datasets.images import ImageSet

__all__ = [
    "CATALOGUE", "check_corruption", "default_prompt", "has_text", "known", "load_images",
    "miscounted", "partners",
]  # fmt: skip


# --- What is known of a set by its name ---


def known(name: str | SetName) -> DatasetEntry:
    """The catalogue's entry for a set; for `cifar10-c:fog:1` the entry of `cifar10-c`.

    Raises:
        DatasetError: the set is unknown.
    """
    parsed = SetName.parse(name)
    if parsed.hub:
        raise DatasetError(f"{name} is on the hub: zsntta datasets verify {name} fetches it.")
    if entry := _entry(parsed):
        return entry
    if str(parsed).startswith(HF):
        raise DatasetError(f"'{short(str(parsed))}' has no name: add one, as in mine={parsed}.")
    raise DatasetError(
        f"no data set '{parsed}'{near(parsed.base, tuple(CATALOGUE))}: zsntta datasets list shows "
        f"all known sets; type NAME=PATH for a folder of images."
    )


def _entry(name: str | SetName) -> DatasetEntry | None:
    """The entry of a known set, by its name and the parameters that it has, if any."""
    name = SetName.parse(name)
    if name.base not in CATALOGUE:
        plugins.load_declared()
    entry = CATALOGUE.get(name.base)
    return None if entry and name.parameters and not entry.parameters else entry


def check_corruption(name: SetName) -> None:
    """Raise DatasetError if a corrupted set's corruption or severity is missing or unknown."""
    entry = _entry(name)
    if entry and entry.parameters and isinstance(entry.read, Reader):
        from zsntta_cli.datasets.known_sets import corruptions_of

        corruptions_of(str(name))


def has_text(images: "ImageSet") -> bool:
    """Whether the set's class names are embedded: ID sets and labelled folders."""
    entry = _entry(images.name)
    return bool(images.class_names) and (entry is None or entry.role != "ood")


def default_prompt(name: str | SetName) -> str:
    """The prompt template of a set that is used as the ID set."""
    entry = _entry(name)
    return entry.prompt if entry else DEFAULT_PROMPT


def partners(name: str | SetName) -> tuple[str, ...]:
    """The OOD sets paired with an ID set; none for a set that the paper does not use."""
    entry = _entry(name)
    return entry.partners if entry else ()


def miscounted(name: str, images: int) -> str:
    """How many images a known set has and should have; empty if the number is right.

    Built-in sets, which have any number of images, and the user's own sets are not checked.
    """
    entry = _entry(name)
    if entry is None or not entry.layout:
        return ""
    times = len(CORRUPTIONS) if ":all:" in name else 1
    is_right = images in (times * count for count in (entry.images, *entry.also_images))
    return "" if is_right else f"{images:,} of {times * entry.images:,} images"


# --- Its images ---


def load_images(spec: str | SetName, data_root: Path, as_shown: bool = False) -> "ImageSet":
    """The images of a known set, of NAME=PATH, or from the hub, as published or as shown.

    Raises:
        DatasetError: the name is unknown, or files are missing or broken.
    """
    name = SetName.parse(spec)
    images = _own(name, data_root) if name.says_where else _known(name, known(name), data_root)
    if not (as_shown and images.files):
        return images
    from zsntta_cli.datasets.decoding import as_shown as shown
    from zsntta_cli.datasets.images import AS_SHOWN

    files, reading = images.files, {**images.reading, AS_SHOWN: True}
    return replace(images, read=lambda i: shown(files[i].read())[0], reading=reading)


def _own(name: SetName, data_root: Path) -> "ImageSet":
    """The images of NAME=PATH, or from the hub, with class names in words."""
    from zsntta_cli.datasets import hub
    from zsntta_cli.datasets.class_names import names_of_folders

    is_repository = bool(name.hub) and not name.hub.startswith(HF)
    is_free = name.base not in CATALOGUE and name.kind == DATASET
    if not is_repository and not (is_free and re.fullmatch(r"\w[\w.-]{0,99}", str(name))):
        raise DatasetError(
            f"'{short(str(name))}' cannot name a folder of images: use up to 100 letters, digits, "
            f"'.', '_' or '-', the first a letter or digit, and not the name of a known set."
        )
    try:
        if is_repository:
            return hub.web_repository(name.base, name.hub, data_root)
        if name.path is None:
            return names_of_folders(hub.hub_images(name.base, name.hub))
        return names_of_folders(_at_path(name.base, name.path, name.label))
    except DatasetError as error:
        raise DatasetError(f"data set '{name.base}': {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = first_line(error)
        raise DatasetError(f"data set '{name.base}' cannot be read ({reason}).") from error


def _at_path(name: str, path: Path, label: str) -> "ImageSet":
    """The images of a list, of a web data set, or of a folder or archive of class folders."""
    from zsntta_cli.datasets import lists, shards
    from zsntta_cli.datasets.known_sets import folder_set

    if lists.is_list(path):
        return lists.list_set(name, path, label)
    if tars := shards.shard_paths(path, label):
        return shards.web_dataset(name, tars, label)
    images = folder_set(name, path)
    if not path.is_dir() or not (unused := lists.unused_list(path)):
        return images
    note = f"{unused} has labels that are not read: --dataset {name}={unused} reads them"
    return replace(images, notes=[*images.notes, note])


def _known(name: SetName, entry: DatasetEntry, root: Path) -> "ImageSet":
    """The images of a known set, which is fetched if it is missing and can be.

    Raises:
        DatasetError: it is missing or incomplete.
    """
    check_corruption(name)
    if not isinstance(entry.read, Reader) or not entry.layout:
        return entry.read(str(name), root)
    try:
        return _published(name, entry, root)
    except (MemoryError, ImportError, SettingsError, StoreError):
        raise
    except Exception as error:  # scipy, torchvision and json raise errors of any kind
        wanted = " or ".join(filter(None, [entry.layout, " and ".join(entry.packed)]))
        source = f"zsntta datasets get {name.base} fetches it from" if entry.files else ""
        raise DatasetError(
            f"data set '{name}' is incomplete in {root} ({_reason(error)}): expected {wanted}; "
            f"{source or 'download it from'} {entry.home}, or choose another folder with "
            f"--data-root"
        ) from error


def _published(name: SetName, entry: DatasetEntry, root: Path) -> "ImageSet":
    """Fetch and read a set, with a note on a file that is not the published one."""
    from zsntta_cli.datasets import download

    reporter = ConsoleReporter()
    lacks = any(not (root / (file.unpacks or file.file)).exists() for file in entry.files)
    if entry.downloads and lacks and not any((root / place).exists() for place in entry.places):
        for line in download.fetch(name.base, entry, root, reporter):
            reporter.note(f"{name.base}: {line}")
    images = entry.read(str(name), root)
    notes = list(images.notes)
    for file in entry.files:
        path = root / file.file
        if file.checksum and not file.unpacks and entry.place(root) == path:
            facts, is_published = download.checked(path, file.checksum, reporter)
            notes += [] if is_published else [f"{path} {facts}"]
    return replace(images, notes=notes)


def _reason(error: Exception) -> str:
    """Why a set cannot be read; for a missing file also what is there instead."""
    if isinstance(error, DatasetError):
        return str(error).rstrip(".")
    if not isinstance(error, FileNotFoundError) or not error.filename:
        return first_line(error).rstrip(".")
    path = Path(error.filename)
    above = next((parent for parent in path.parents if parent.is_dir()), None)
    names = sorted(p.name for p in above.iterdir() if p.name[0] != ".") if above else []
    return f"there is no {path}" + (f"; {above} has {first_of(names)}" if names else "")
