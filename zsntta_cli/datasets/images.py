"""An image set as the extraction sees it, whatever it is read from."""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.decoding import as_extracted, is_deep
from zsntta_cli.errors import DatasetError, first_line

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)  # PIL's own
# Keys of what a file records of how images were read.
AS_SHOWN, DEEP = "as_shown", "bits"
_DEEP = (".png", ".tif", ".tiff", ".pgm", ".ppm")  # formats that may have more than 8 bits
_LOOKED_AT = 64  # images of a set whose bits are looked at, about
_LIMIT_SEED = 0  # of the subset that --limit takes: always the same one


@dataclass(frozen=True)
class ImageSet:
    """N images with labels and ids in a fixed order; an image is read when it is asked for."""

    name: str
    read: Callable[[int], Image.Image]  # RGB image i; OSError where it is broken
    labels: NDArray[np.int32]  # (N,), -1 = none
    sample_ids: Sequence[str]  # (N,) relative path or index
    class_names: Sequence[str] = ()
    fingerprint: str = ""  # changes whenever the images' content does
    limit: int | None = None
    reload: "Callable[[], ImageSet] | None" = None  # the same again in another process; picklable
    folder_names: Sequence[str] = ()  # of the classes, where their names are not the folders'
    reading: Mapping[str, object] = field(default_factory=dict)  # where it is not as published
    facts: Mapping[str, Any] = field(default_factory=dict)  # of its source, no part of identity
    templates: Sequence[str] = ()  # prompts that it brings along; their features are averaged

    def __len__(self) -> int:
        return len(self.labels)

    def identity(self) -> dict[str, object]:
        """What a feature file records of its source."""
        digest = hashlib.sha256(self.fingerprint.encode())
        digest.update("\0".join(self.sample_ids).encode(errors="surrogateescape"))
        names = self.folder_names or self.class_names
        digest.update("\0".join(names).encode(errors="surrogateescape"))
        digest.update(self.labels.tobytes())
        return {
            "dataset": self.name, "images": len(self), "limit": self.limit,
            "digest": digest.hexdigest(), **self.reading,
        }  # fmt: skip


@dataclass(frozen=True)
class StoredImages(ABC):
    """Reads image i of files, wherever they lie."""

    shown: bool = field(default=False, kw_only=True)  # as a viewer shows it, not as published

    @abstractmethod
    def path(self, i: int) -> str:
        """What a file is called."""

    @abstractmethod
    def source(self, i: int) -> bytes | Path:
        """A file, or its content; OSError where it cannot be had."""

    def __call__(self, i: int) -> Image.Image:
        """The image, as RGB; OSError where it is broken."""
        return as_extracted(self.source(i), self.shown)

    def reading(self, count: int) -> dict[str, object]:
        """What of a set of `count` images is not read as earlier versions did.

        They read pictures of more than 8 bits as white. Looked at are some files alone, of formats
        that have such.
        """
        deep = [i for i in range(count) if self._may_be_deep(i)]
        looked_at = deep[:: max(1, len(deep) // _LOOKED_AT)]
        return {DEEP: "8 of more bits"} if any(map(self._is_deep, looked_at)) else {}

    def _may_be_deep(self, i: int) -> bool:
        return self.path(i).lower().endswith(_DEEP)

    def _is_deep(self, i: int) -> bool:
        try:
            return is_deep(self.source(i))
        except OSError:
            return False


def as_shown(images: ImageSet) -> ImageSet:
    """The images as a viewer shows them, where they are files; others have nothing to turn."""
    if not isinstance(images.read, StoredImages):
        return images
    reading = {**images.reading, AS_SHOWN: True}
    return replace(images, read=replace(images.read, shown=True), reading=reading)


def limited(images: ImageSet, limit: int | None) -> ImageSet:
    """At most `limit` images, drawn without regard to class but always the same."""
    if limit is None or limit >= len(images):
        return images
    return replace(
        pick_rows(images, subset(len(images), limit)),
        limit=limit,
        reload=images.reload and partial(_limited_again, images.reload, limit),
    )


def pick_rows(images: ImageSet, rows: NDArray[np.int64]) -> ImageSet:
    """Some images of a set, in the order of `rows`."""
    return replace(
        images,
        read=_Rows(images.read, rows),
        labels=images.labels[rows],
        sample_ids=[images.sample_ids[i] for i in rows.tolist()],
    )


def subset(count: int, limit: int) -> NDArray[np.int64]:
    """At most `limit` of `count` rows, drawn but always the same, in order."""
    generator = np.random.Generator(np.random.PCG64(_LIMIT_SEED))
    return np.sort(generator.permutation(count)[:limit])


def _limited_again(reload: Callable[[], ImageSet], limit: int) -> ImageSet:
    return limited(reload(), limit)


@dataclass(frozen=True)
class _Rows:
    """Read image i of a subset."""

    read: Callable[[int], Image.Image]
    rows: NDArray[np.int64]

    def __call__(self, i: int) -> Image.Image:
        return self.read(int(self.rows[i]))


def numbered(count: int) -> list[str]:
    """Sample ids of `count` images that have no names: their numbers."""
    return [f"{i:05d}" for i in range(count)]


_WNID = re.compile(r"n\d{8}")  # of WordNet, as ImageNet's folders are called


def translate_wnids(images: ImageSet) -> ImageSet:
    """Give a set whose folders are all named by wnids of ImageNet CLIP's names of these classes."""
    if not images.class_names or not all(map(_WNID.fullmatch, images.class_names)):
        return images
    from zsntta_cli.datasets.readers import imagenet

    names_by_wnid = {row.wnid: row.name for row in imagenet.classes()}
    if not all(name in names_by_wnid for name in images.class_names):
        return images
    return _rename_classes(images, images.class_names, names_by_wnid)


def with_class_names(images: ImageSet, path: Path) -> ImageSet:
    """The set with the class names that a file gives.

    It has a name a line, in the order of the folders, or lines of a folder and, behind a tab or a
    space, its class name.

    Raises:
        DatasetError: no such file, or lines that do not fit the folders.
    """
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"cannot read the class names {path} ({first_line(error)}).") from error
    lines = [line for line in lines if line]
    folders = _folders(images, len(lines))
    pairs = [re.split(r"[\t ]+", line, maxsplit=1) for line in lines]
    by_folder = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    if folders and all(folder in by_folder for folder in folders):
        return _rename_classes(images, folders, by_folder)
    if len(lines) != len(folders):
        raise DatasetError(
            f"{path} has {len(lines)} lines and '{images.name}' {len(folders)} class folders: must "
            f"be a name a line in their order, or lines of a folder and its name."
        )
    return _rename_classes(images, folders, dict(zip(folders, lines, strict=True)))


def _folders(images: ImageSet, count: int) -> Sequence[str]:
    """The folders of a set's classes; of labels without names their numbers, `count` at least."""
    highest = int(images.labels.max(initial=-1))
    numbers = [str(i) for i in range(max(highest + 1, count))] if highest >= 0 else []
    return images.folder_names or images.class_names or numbers


def _rename_classes(images: ImageSet, folders: Sequence[str], names: Mapping[str, str]) -> ImageSet:
    return replace(images, class_names=[names[folder] for folder in folders], folder_names=folders)
