"""The ImageNet family: a folder a class, labels in ImageNet's standard order.

`imagenet_classes.tsv` has the 1000 wnids (from timm, Apache-2.0) with the curated names of CLIP
(from open_clip, MIT) and marks the 200 classes of ImageNet-A and of ImageNet-R.
"""

from collections.abc import Mapping, Set
from functools import cache
from pathlib import Path
from typing import NamedTuple

from zsntta_cli.datasets.hidden import is_hidden
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers.archives import (
    below_common_folder,
    images_among,
    kind_of,
    member_images,
    open_archive,
)
from zsntta_cli.datasets.readers.folders import images_in, listed_images, require_path
from zsntta_cli.errors import DatasetError, first_of

_TABLE = Path(__file__).with_name("imagenet_classes.tsv")


class ImageNetClass(NamedTuple):
    """One class of ImageNet."""

    wnid: str  # of WordNet, the name of its folder
    name: str  # for the prompt
    subsets: str  # "a" and "r" where ImageNet-A and -R have it


@cache
def classes(subset: str = "") -> tuple[ImageNetClass, ...]:
    """The 1000 classes in standard order, or the 200 of subset "a" or "r"."""
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
    rows = [ImageNetClass(*line.split("\t")) for line in lines if not line.startswith("#")]
    return tuple(row for row in rows if subset in row.subsets)


def by_wnid(name: str, root: Path, *, path: str, packed: str, subset: str = "") -> ImageSet:
    """The images of a set with one folder a wnid at `path` under the data root, or its archive."""
    if _is_packed(root, path, packed):
        rows = classes(subset)
        index = {row.wnid: label for label, row in enumerate(rows)}
        return _class_members(name, root / packed, index, [row.name for row in rows])
    return by_wnids(name, root, [path], subset)


def by_wnids(name: str, root: Path, paths: list[str], subset: str = "") -> ImageSet:
    """The images of several such folders in a row; labels count the classes of the subset."""
    rows = classes(subset)
    index = {row.wnid: label for label, row in enumerate(rows)}
    return _class_folders(name, root, paths, index, [row.name for row in rows])


def by_number(name: str, root: Path, *, path: str, packed: str) -> ImageSet:
    """ImageNet-V2: the folders are the labels '0' to '999', so '10' is no neighbour of '1'."""
    names = [row.name for row in classes()]
    index = {str(label): label for label in range(len(names))}
    if _is_packed(root, path, packed):
        return _class_members(name, root / packed, index, names)
    return _class_folders(name, root, [path], index, names)


def _is_packed(root: Path, path: str, packed: str) -> bool:
    """Whether an archive is there and its folder is not."""
    return not (root / path).exists() and (root / packed).is_file()


def _class_members(
    name: str, path: Path, index: Mapping[str, int], class_names: list[str]
) -> ImageSet:
    """The images of an archive with a folder a class: the same set as its folder would be."""
    # ImageNet-V2's .tar.gz is a plain tar.
    members, read = open_archive(name, path, kind_of(path) or ".tar")
    if not (images := images_among(members)):
        raise DatasetError(f"data set '{name}': no image in {path} (looked for .jpg, .png, …).")
    places = dict(zip(below_common_folder(list(images)), images.values(), strict=True))
    by_class: dict[str, list[tuple[str, ...]]] = {folder: [] for folder in index}
    folders = {place[0] if len(place) > 1 else "." for place in places}
    _check_folders(name, path, folders, index)
    for place in places:
        by_class[place[0]].append(place)
    order = [place for folder in index for place in by_class[folder]]
    return member_images(
        name,
        [(read, places[place]) for place in order],
        [index[place[0]] for place in order],
        ["/".join(place) for place in order],
        class_names,
    )


def _class_folders(
    name: str, root: Path, paths: list[str], index: Mapping[str, int], class_names: list[str]
) -> ImageSet:
    image_paths: list[Path] = []
    labels: list[int] = []
    for path in paths:
        _check_folders(name, root / path, _folders_in(require_path(root / path)), index)
        for folder, label in index.items():
            images = images_in(root / path / folder)
            image_paths += images
            labels += [label] * len(images)
    if not image_paths:
        raise DatasetError(f"data set '{name}': the class folders in {root / paths[0]} are empty.")
    base = root / paths[0] if len(paths) == 1 else root
    return listed_images(name, base, image_paths, labels, class_names)


def _folders_in(path: Path) -> set[str]:
    return {p.name for p in path.iterdir() if p.is_dir() and not is_hidden(p.name)}


def _check_folders(name: str, path: Path, folders: Set[str], index: Mapping[str, int]) -> None:
    """Raise DatasetError unless every class has its folder, and every folder is a class."""
    missing, unknown = sorted(index.keys() - folders), sorted(folders - index.keys())
    if missing:
        raise DatasetError(
            f"data set '{name}': {len(missing):,} of {len(index):,} class folders are missing in "
            f"{path}, such as {missing[0]}"
            f"{f'; it has {first_of(unknown)}' if unknown else ''}."
        )
    if unknown:
        raise DatasetError(
            f"data set '{name}': {len(unknown):,} of {len(folders):,} folders in {path} are no "
            f"class of it, such as {unknown[0]}."
        )
