"""An image set as the extraction sees it, whatever it is read from."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)  # PIL's own
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
            "digest": digest.hexdigest(),
        }  # fmt: skip


def limited(images: ImageSet, limit: int | None) -> ImageSet:
    """At most `limit` images, drawn without regard to class but always the same."""
    if limit is None or limit >= len(images):
        return images
    rows = subset(len(images), limit)
    return replace(
        images,
        read=_Rows(images.read, rows),
        labels=images.labels[rows],
        sample_ids=[images.sample_ids[i] for i in rows],
        limit=limit,
        reload=images.reload and partial(_limited_again, images.reload, limit),
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
    """Sample ids of images that have no names."""
    return [f"{i:05d}" for i in range(count)]
