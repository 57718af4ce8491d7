"""Folders of image files: class subfolders are labels."""

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.hidden import is_hidden
from zsntta_cli.datasets.images import SUFFIXES, ImageSet, StoredImages
from zsntta_cli.datasets.left_out import LeftOut
from zsntta_cli.datasets.presence import AS_IS, USABLE
from zsntta_cli.errors import DatasetError


def folder(name: str, path: Path) -> ImageSet:
    """The images of a folder: class subfolders are labels; without subfolders there are no labels.

    Raises:
        DatasetError: no such folder, no image in it, or images beside class folders.
    """
    if not path.is_dir():
        raise DatasetError(f"data set '{name}': there is no folder {path}.")
    paths = images_in(path)
    if not paths:
        raise DatasetError(f"data set '{name}': no image in {path} (looked for .jpg, .png, …).")
    labels, class_names = by_folder(name, path, [p.relative_to(path).parts for p in paths])
    return listed_images(name, path, paths, labels, class_names)


def by_folder(
    name: str, where: Path, places: Sequence[tuple[str, ...]]
) -> tuple[list[int], list[str]]:
    """Labels and class names of images by the parts of their paths: the first folder is the class.

    Without folders there are neither: labels of -1, no names.

    Raises:
        DatasetError: images beside class folders.
    """
    classes = [place[0] if len(place) > 1 else "" for place in places]
    names = sorted(set(classes))
    if "" in names and len(names) > 1:
        raise DatasetError(
            f"data set '{name}': {where} has images beside class folders, such as "
            f"{places[classes.index('')][0]}: each must be in a folder of its class."
        )
    index = {class_name: -1 if class_name == "" else i for i, class_name in enumerate(names)}
    return [index[class_name] for class_name in classes], [] if names == [""] else names


class DeeperClasses(NamedTuple):
    """Folders within class folders that look like the classes."""

    above: str  # the folder that holds them
    names: list[str]


_FEW = 4  # class folders that may be the parts of a set: train, val, test
_MOST = 0.9  # of the images, that lie in deeper folders where classes do


def deeper_classes(sample_ids: Sequence[str]) -> DeeperClasses | None:
    """The folders within class folders, by the images' ids, if they look more like classes.

    They do where there are few class folders, nearly all images lie deeper, and there are more
    folders there: `train/cat/1.png` and `val/cat/2.png` are of two classes, train and val.
    """
    folders = [PurePosixPath(sample_id).parts[:-1] for sample_id in sample_ids]
    outer = {parts[0] for parts in folders if parts}
    deep = [parts for parts in folders if len(parts) > 1]
    if not deep or len(outer) > _FEW or len(deep) < _MOST * len(folders):
        return None
    ends = zip(min(deep), max(deep), strict=False)
    level = max(1, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends)))
    inner = {parts[: level + 1] for parts in deep if len(parts) > level}
    if len(inner) <= len(outer):
        return None
    return DeeperClasses("/".join(deep[0][:level]), sorted({parts[level] for parts in inner}))


def listed_images(
    name: str, base: Path, paths: Sequence[Path], labels: Sequence[int], class_names: Sequence[str]
) -> ImageSet:
    """Image files with their labels; the ids are the paths below `base`.

    Raises:
        DatasetError: a file is missing or a label has no class name.
        OSError: a file cannot be looked at.
    """
    missing = {path for path in paths if not path.is_file()}
    if missing and AS_IS.get() and len(missing) < len(paths):
        pairs = zip(paths, labels, strict=True)
        paths, labels = map(list, zip(*(p for p in pairs if p[0] not in missing), strict=True))
    elif missing:
        raise DatasetError(
            f"data set '{name}' is not whole: {len(missing):,} of {len(paths):,} images are "
            f"missing, such as {min(missing)}.",
            remedy=USABLE,
        )
    checked = _check_labels(name, labels, class_names)
    sizes = ",".join(str(path.stat().st_size) for path in paths)
    ids = [path.relative_to(base).as_posix() for path in paths]
    read = _FileImages(paths)
    return ImageSet(
        name, read, checked, ids, class_names, fingerprint=sizes, reading=read.reading(len(paths))
    )


def _check_labels(
    name: str, labels: Sequence[int], class_names: Sequence[str]
) -> NDArray[np.int32]:
    array = np.asarray(labels, np.int32)
    if class_names and len(array) and not 0 <= array.min() <= array.max() < len(class_names):
        raise DatasetError(
            f"data set '{name}': labels run from {array.min()} to {array.max()}, but there are "
            f"{len(class_names)} class names."
        )
    return array


def images_in(path: Path, left_out: LeftOut | None = None) -> list[Path]:
    """All image files below a folder, sorted, without what is hidden; links are followed.

    `left_out` counts files that are not read.
    """
    left_out = LeftOut() if left_out is None else left_out
    images, seen = list[Path](), set[tuple[int, int]]()
    for at, folders, names in os.walk(path, onerror=_refuse, followlinks=True):
        status = os.stat(at)
        if (status.st_dev, status.st_ino) in seen:  # a link to a folder that holds it
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        for hidden in filter(is_hidden, folders):
            left_out.add_hidden_folder((at, hidden))
        folders[:] = sorted(folder for folder in folders if not is_hidden(folder))
        for name in sorted(names):
            file = Path(at, name)
            is_image = file.suffix.lower() in SUFFIXES and not is_hidden(name)
            if is_image and file.is_file():
                images.append(file)
            else:
                left_out.add(name)
    return sorted(images)


def _refuse(error: OSError) -> None:
    """Raise: a folder that cannot be listed may hold images, and without them numbers are wrong."""
    raise error


def require_path(path: Path) -> Path:
    """The path, if there is something.

    Raises:
        FileNotFoundError: there is not; `load_images` adds where to get the set.
    """
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return path


@dataclass(frozen=True)
class _FileImages(StoredImages):
    """Reads image i of a list of files."""

    paths: Sequence[Path]

    def path(self, i: int) -> str:
        """The file's name."""
        return self.paths[i].name

    def source(self, i: int) -> Path:
        """The file."""
        return self.paths[i]
