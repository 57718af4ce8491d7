"""Folders of image files: class subfolders are labels."""

import errno
import glob
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.hidden import is_hidden
from zsntta_cli.datasets.images import SUFFIXES, ImageSet, StoredImages
from zsntta_cli.datasets.left_out import LeftOut
from zsntta_cli.datasets.presence import AS_IS, USABLE
from zsntta_cli.datasets.readers.levels import Place, at_level, literal
from zsntta_cli.errors import DatasetError

_SHOWN = 3  # names in an error


def folder(name: str, path: Path, above: Place = ()) -> ImageSet:
    """The images of a folder: class subfolders are labels; without subfolders there are no labels.

    `above` are folders above those of the classes, as `levels` has them.

    Raises:
        DatasetError: no such folder, no image in it, or images beside class folders.
    """
    if not path.is_dir():
        raise DatasetError(f"data set '{name}': there is no folder {path}.")
    left_out = LeftOut()
    paths = images_in(path, left_out)
    places = {p.relative_to(path).parts: p for p in paths}
    below = at_level(list(places), above)
    left_out.add_others([place for place in places if place not in below])
    paths = [places[place] for place in below]
    if not paths:
        raise no_image(name, path.joinpath(*above), left_out)
    labels, class_names = by_folder(name, path, list(below.values()))
    if class_names and not above:
        left_out.add_empty(sorted(_folders_in(path) - set(class_names)))
    base = path.joinpath(*above[: literal(above)])
    images = listed_images(name, base, paths, labels, class_names)
    origin = "the folders" if class_names else ""
    notes = _about_files_beside(name, path, len(paths), origin, left_out)
    return replace(images, labels_from=origin, left_out=left_out.words(), notes=tuple(notes))


def folder_or_above(name: str, root: Path, *, path: str) -> ImageSet:
    """The images of a known set: of a folder `path` under the data root, or of the one above it."""
    place = root / path
    return folder(name, place if place.is_dir() else require_path(place.parent))


def _about_files_beside(
    name: str, path: Path, images: int, origin: str, left_out: LeftOut
) -> Iterator[str]:
    """What to do with files that may have labels, if most images have one."""
    endings = [ending for ending, count in left_out.beside.items() if 2 * count >= images]
    if endings:
        where = shlex.quote(str(path))
        yield (
            f"{f'labels are from {origin}' if origin else 'labels?'} {', '.join(endings)} files "
            f"are beside the images, and are read in a shard: tar --sort=name -cf {name}.tar -C "
            f"{where} . && zsntta extract --dataset {name}={name}.tar"
        )


def _folders_in(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir() if entry.is_dir() and not is_hidden(entry.name)}


def no_image(name: str, where: Path, left_out: LeftOut) -> DatasetError:
    """The error for a set in which there is no image, with what there is."""
    words = left_out.words()
    tars = sorted(where.glob("*.tar")) if where.is_dir() else []
    if tars:
        stems = ",".join(tar.stem for tar in tars[:_SHOWN]) + ",…" * (len(tars) > _SHOWN)
        if all(tar.stem.isdecimal() for tar in tars):
            stems = f"{tars[0].stem}..{tars[-1].stem}" if len(tars) > 1 else tars[0].stem
        pattern = shlex.quote(f"{where}/{{{stems}}}.tar")
        words += f". If these are shards of one set, name them: {name}={pattern}"
    return DatasetError(
        f"data set '{name}': no image in {where} (looked for .jpg, .png, …)"
        f"{f'; left out: {words}' if words else ''}."
    )


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
            f"data set '{name}': {len(missing):,} of {len(paths):,} images are missing, such as "
            f"{min(missing)}{_instead_of(min(missing))}.",
            remedy=USABLE,
        )
    checked = _check_labels(name, labels, class_names)
    sizes = ",".join(str(path.stat().st_size) for path in paths)
    ids = [path.relative_to(base).as_posix() for path in paths]
    read = _FileImages(paths)
    return ImageSet(
        name, read, checked, ids, class_names, fingerprint=sizes, reading=read.reading(len(paths))
    )


def _instead_of(path: Path) -> str:
    """What there is in place of a file that is not there, in its folder or one folder deeper."""
    folder = path.parent
    if not folder.is_dir():
        return ""
    own = (p for p in folder.iterdir() if p.name.lower() == path.name.lower())
    other = next(own, None) or next(folder.glob(f"*/{glob.escape(path.name)}"), None)
    return f", but there is {other}" if other else ""


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
