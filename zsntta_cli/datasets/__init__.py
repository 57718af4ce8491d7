"""The catalogue: one entry a data set. A new set is a line here, with a reader if it needs one."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli.datasets import readers
from zsntta_cli.datasets.builtin import BUILTIN
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.errors import DatasetError
from zsntta_cli.vocabulary import DEFAULT_PROMPT


@dataclass(frozen=True)
class Entry:
    """A known data set."""

    role: str  # "id": its class names are embedded too; "ood"; "both"
    images: int
    classes: int
    split: str
    read: Callable[[str, Path], ImageSet]  # by name, from the data root
    prompt: str = DEFAULT_PROMPT
    partners: tuple[str, ...] = ()  # OOD sets that the paper (or the demo) pairs it with


_CIFAR_PARTNERS = ("svhn", "lsun", "texture", "places")  # the paper's ID-OOD pairs
_BUILTIN_PARTNERS = ("glyphs", "textures", "other-shapes", "digits")

CATALOGUE: dict[str, Entry] = {
    "cifar10": Entry("id", 10_000, 10, "test", readers.cifar10, partners=_CIFAR_PARTNERS),
    "cifar100": Entry("id", 10_000, 100, "test", readers.cifar100, partners=_CIFAR_PARTNERS),
    "svhn": Entry("ood", 26_032, 10, "test", readers.svhn),
    "texture": Entry("ood", 5_640, 47, "all", readers.texture),
} | {
    name: Entry(
        "both" if name == "digits" else entry.role, entry.count, len(entry.class_names),
        "built in", readers.builtin, entry.prompt,
        _BUILTIN_PARTNERS if name == "shapes" else (),
    )
    for name, entry in BUILTIN.items()
}  # fmt: skip


def load_images(spec: str, data_root: Path) -> ImageSet:
    """The images of a known set, or of a folder given as NAME=PATH.

    Raises:
        DatasetError: unknown name, missing or broken files.
    """
    name, _, path = spec.partition("=")
    if not path:
        if name not in CATALOGUE:
            raise DatasetError(
                f"no data set '{name}': known are {', '.join(CATALOGUE)}; a folder of images is "
                f"given as NAME=PATH."
            )
        return CATALOGUE[name].read(name, data_root)
    if name in CATALOGUE or name.startswith("noise-") or not re.fullmatch(r"[\w.-]+", name):
        raise DatasetError(
            f"'{name}' cannot name a folder of images: take letters, digits, '.', '_' or '-', and "
            f"no known set's name."
        )
    return readers.folder(name, Path(path).expanduser())


def has_text(images: ImageSet) -> bool:
    """Whether the set's class names are embedded: ID sets and labelled folders."""
    entry = CATALOGUE.get(images.name)
    return bool(images.class_names) and (entry is None or entry.role != "ood")


def default_prompt(name: str) -> str:
    """The prompt template of a set used as ID."""
    return CATALOGUE[name].prompt if name in CATALOGUE else DEFAULT_PROMPT


def partners(name: str) -> tuple[str, ...]:
    """The OOD sets that an ID set is paired with; none for a set the paper does not know."""
    return CATALOGUE[name].partners if name in CATALOGUE else ()
