"""Data sets by name: known ones from the catalogue, any folder of images as NAME=PATH."""

import re
from pathlib import Path

from zsntta_cli.datasets import readers
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.errors import DatasetError
from zsntta_cli.vocabulary import DEFAULT_PROMPT

__all__ = ["CATALOGUE", "default_prompt", "has_text", "load_images", "partners"]


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
    reserved = name in CATALOGUE or name.startswith(("noise-", "words-"))
    if reserved or not re.fullmatch(r"[\w.-]+", name):
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
