"""Class names that say more than the folders of a set of one's own: a list of them, or wnids."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.errors import DatasetError

_WNID = re.compile(r"n\d{8}")  # of WordNet, as ImageNet's folders are called


def translated(images: ImageSet) -> ImageSet:
    """A set whose folders are all named by wnids of ImageNet gets CLIP's names of these classes."""
    if not images.class_names or not all(map(_WNID.fullmatch, images.class_names)):
        return images
    from zsntta_cli.datasets.readers import imagenet

    known = {row.wnid: row.name for row in imagenet.classes()}
    if not all(name in known for name in images.class_names):
        return images
    return _renamed(images, known)


def named(images: ImageSet, path: Path) -> ImageSet:
    """A set with the class names of a file.

    It has a name a line, in the order of the folders, or lines of a folder and, behind a tab or a
    space, its class name.

    Raises:
        DatasetError: no such file, or lines that do not fit the folders.
    """
    folders = images.folder_names or images.class_names
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"cannot read the class names {path} ({error}).") from error
    lines = [line for line in lines if line]
    pairs = [re.split(r"[\t ]+", line, maxsplit=1) for line in lines]
    by_folder = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    if folders and all(folder in by_folder for folder in folders):
        return _renamed(images, by_folder)
    if len(lines) != len(folders):
        raise DatasetError(
            f"{path} has {len(lines)} lines and '{images.name}' {len(folders)} class folders: must "
            f"be a name a line in their order, or lines of a folder and its name."
        )
    return _renamed(images, dict(zip(folders, lines, strict=True)))


def _renamed(images: ImageSet, names: Mapping[str, str]) -> ImageSet:
    folders: Sequence[str] = images.folder_names or images.class_names
    return replace(images, class_names=[names[folder] for folder in folders], folder_names=folders)
