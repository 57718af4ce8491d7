"""An image set as the extraction sees it, whatever it is read from."""

import hashlib
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
from zsntta_cli.errors import counted, short

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)  # PIL's own
# Keys of what a file records of how images were read.
AS_SHOWN, DEEP = "as_shown", "bits"
_DEEP = (".png", ".tif", ".tiff", ".pgm", ".ppm")  # formats that may have more than 8 bits
_LOOKED_AT = 64  # images of a set whose bits are looked at, about
_SHOWN = 3  # names of classes in a line
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
    labels_from: str = ""  # what told the labels: "the folders", ".cls files"
    left_out: str = ""  # what of its files was not read, in words
    notes: Sequence[str] = ()  # what should be known of how it was read

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


def account(images: ImageSet) -> str:
    """One line on what was read of a set: images, labels and classes, and what was left out."""
    classes, labelled = images.class_names, int((images.labels >= 0).sum())
    origin = f"labels from {images.labels_from}, " if images.labels_from else ""
    told = f"{origin}{counted(len(classes), 'class', 'classes')}: {first_names(classes)}"
    if not labelled:
        told = "no labels"
    elif not classes:
        told = f"{origin}without class names"
    some = "" if labelled in (0, len(images)) else f" ({labelled:,} with a label)"
    left_out = f"; left out: {images.left_out}" if images.left_out else ""
    return f"{images.name}: {counted(len(images), 'image')}{some}, {told}{left_out}"


def first_names(names: Sequence[str]) -> str:
    """The first few names of classes, for a line."""
    return ", ".join(map(short, names[:_SHOWN])) + ", …" * (len(names) > _SHOWN)


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
        """Whether a set of `count` images has pictures of more than 8 bits, which are brought to 8.

        Looked at are some files alone, of formats that have such.
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
