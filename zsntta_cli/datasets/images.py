"""An image set as the extraction sees it, whatever its source."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from zsntta_cli.datasets import decoding
from zsntta_cli.datasets.names import LISTS
from zsntta_cli.datasets.tree import File
from zsntta_cli.errors import DatasetError, counted, first_of, short
from zsntta_cli.files import sha256

UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)  # PIL's own
# Keys of what a file records of how images were read.
AS_SHOWN, DEEP = "as_shown", "bits"
_DEEP = (".png", ".tif", ".tiff", ".pgm", ".ppm")  # formats that may have more than 8 bits
_SAMPLE = 64  # images of a set whose bits are checked, about
_SHOWN = 3  # names of classes in a line


@dataclass(frozen=True)
class ImageSet:
    """N images with labels and ids in a fixed order; an image is read when it is requested."""

    name: str
    read: Callable[[int], Image.Image]  # RGB image i; OSError if it is broken
    labels: NDArray[np.int32]  # (N,), -1 = none
    sample_ids: Sequence[str]  # (N,) relative path or index
    class_names: Sequence[str] = ()
    fingerprint: str = ""  # changes whenever the images' content does
    limit: int | None = None
    folder_names: Sequence[str] = ()  # of the classes, if these have other names
    reading: Mapping[str, object] = field(default_factory=dict)  # how, if not as published
    facts: Mapping[str, Any] = field(default_factory=dict)  # of its source, not part of identity
    templates: Sequence[str] = ()  # its own prompts, whose features are averaged
    labels_from: str = ""  # the source of the labels: "folders", ".cls files"
    left_out: str = ""  # which files were not read, in words
    notes: Sequence[str] = ()  # what users should know of how it was read
    files: Sequence[File] = ()  # (N,) that `read` decodes; none if it does something else

    def __len__(self) -> int:
        return len(self.labels)

    def identity(self) -> dict[str, object]:
        """What a feature file records about its source."""
        digest = hashlib.sha256(self.fingerprint.encode())
        for names in (self.sample_ids, self.folder_names or self.class_names):
            digest.update("\0".join(names).encode(errors="surrogateescape"))
        digest.update(self.labels.tobytes())
        return {
            "dataset": self.name, "images": len(self), "limit": self.limit,
            "digest": digest.hexdigest(), **self.reading,
        }  # fmt: skip


def account(images: ImageSet) -> str:
    """One line on what was read from a set: images, labels and classes, and skipped files."""
    classes, labelled = list(map(short, images.class_names)), int((images.labels >= 0).sum())
    of_labels = f"labels from its {images.labels_from}, " if images.labels_from else ""
    if not labelled:
        of_labels = "no labels"
    elif not classes:
        of_labels += "without class names"
    else:
        of_labels += f"{counted(len(classes), 'class', 'classes')}: {first_of(classes, _SHOWN)}"
        used = {*images.labels.tolist()}
        if unused := [name for label, name in enumerate(classes) if label not in used]:
            of_labels += f" ({len(unused):,} without an image: {first_of(unused, _SHOWN)})"
    with_label = f" ({labelled:,} with a label)" if 0 < labelled < len(images) else ""
    left_out = f"; skipped: {images.left_out}" if images.left_out else ""
    return f"{images.name}: {counted(len(images), 'image')}{with_label}, {of_labels}{left_out}"


def file_set(
    name: str,
    files: Sequence[File],
    labels: ArrayLike,
    class_names: Sequence[str] = (),
    **more: Any,
) -> ImageSet:
    """A set of image files, as published, with `more` of its fields.

    Ids are paths unless others are given, and file sizes identify the content. It records whether
    pictures have more than 8 bits, of which a sample is opened.

    Raises:
        DatasetError: a label has no class name.
    """
    deep = [file for file in files if file.ending in _DEEP]
    sample = deep[:: max(1, len(deep) // _SAMPLE)]
    reading = {DEEP: "8 of more bits"} if any(map(_is_deep, sample)) else {}
    images = ImageSet(
        name, lambda i: decoding.as_extracted(files[i].read()), _checked(labels, class_names),
        [file.id for file in files], class_names, ",".join(str(file.size) for file in files),
        reading=reading, files=files,
    )  # fmt: skip
    return replace(images, **more)


def _is_deep(file: File) -> bool:
    """Whether a picture has one channel of more than 8 bits."""
    try:
        return decoding.opened(file.read()).mode[0] in "IF"
    except Exception:  # a damaged one is reported when it is read
        return False


def array_set(
    name: str, pixels: NDArray[np.uint8], labels: ArrayLike, class_names: Sequence[str]
) -> ImageSet:
    """A set of images from pixels (N, H, W, 3), whose ids are numbers.

    Raises:
        DatasetError: a label has no class name, or the arrays do not fit each other.
    """
    pixels, labels = np.ascontiguousarray(pixels), _checked(labels, class_names)
    fits = labels.shape == pixels.shape[:-3] and pixels.shape[-1] == 3 and len(pixels) > 0
    if not fits or pixels.dtype != np.uint8:
        shapes = f"{labels.shape} and its images {pixels.dtype} {pixels.shape}"
        raise DatasetError(f"its labels are {shapes}: must be (N,) and bytes (N, H, W, 3).")
    return ImageSet(
        name, lambda i: Image.fromarray(pixels[i]), labels,
        numbered(len(pixels)), class_names, hashlib.sha256(pixels.data).hexdigest(),
    )  # fmt: skip


def _checked(labels: ArrayLike, class_names: Sequence[str]) -> NDArray[np.int32]:
    array = np.asarray(labels, np.int32)
    low, high = array.min(initial=-1), array.max(initial=-1)
    if low < -1 or (class_names and high >= len(class_names)):
        span = f"{array.min()} to {high}"
        raise DatasetError(f"labels run from {span}, but there are {len(class_names)} class names.")
    return array


def with_lists(images: ImageSet, lists: Sequence[Path]) -> ImageSet:
    """The set with the digests of its lists."""
    digests = {path.name: sha256(path) for path in lists}
    return replace(images, facts={**images.facts, LISTS: digests}) if digests else images


def limited(images: ImageSet, limit: int | None) -> ImageSet:
    """At most `limit` images, chosen at random but always the same, regardless of class."""
    if limit is None or limit >= len(images):
        return images
    return replace(pick_rows(images, subset(len(images), limit)), limit=limit)


def pick_rows(images: ImageSet, rows: NDArray[np.int64]) -> ImageSet:
    """Some images of a set, in the order of `rows`."""
    return replace(
        images,
        read=lambda i: images.read(int(rows[i])),
        labels=images.labels[rows],
        sample_ids=[images.sample_ids[i] for i in rows.tolist()],
        files=[images.files[i] for i in rows.tolist()] if images.files else (),
    )


def subset(count: int, limit: int) -> NDArray[np.int64]:
    """At most `limit` of `count` rows, in order, chosen at random but always the same."""
    generator = np.random.Generator(np.random.PCG64(0))
    return np.sort(generator.permutation(count)[:limit])


def numbered(count: int) -> list[str]:
    """Sample ids of `count` images without names: their numbers."""
    return [f"{i:05d}" for i in range(count)]
