"""Sets in their originals' files, by torchvision, which is imported when one of them is read."""

import contextlib
import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.images import ImageSet, numbered
from zsntta_cli.datasets.readers.folders import folder
from zsntta_cli.errors import first_line


@dataclass(frozen=True)
class _ArrayImage:
    """Read image i of an array (N, H, W, 3) of bytes."""

    pixels: NDArray[np.uint8]

    def __call__(self, i: int) -> Image.Image:
        return Image.fromarray(self.pixels[i])


def _arrays(
    name: str, pixels: NDArray[np.uint8], labels: Sequence[int], class_names: Sequence[str]
) -> ImageSet:
    pixels = np.ascontiguousarray(pixels)
    return ImageSet(
        name, _ArrayImage(pixels), np.asarray(labels, np.int32), numbered(len(pixels)),
        class_names, hashlib.sha256(pixels.data).hexdigest(),
    )  # fmt: skip


def cifar10(name: str, root: Path) -> ImageSet:
    """CIFAR-10, test split."""
    data = torchvision_set("CIFAR10", root, train=False)
    return _arrays(name, data.data, data.targets, data.classes)


def cifar100(name: str, root: Path) -> ImageSet:
    """CIFAR-100, test split, fine labels."""
    data = torchvision_set("CIFAR100", root, train=False)
    return _arrays(name, data.data, data.targets, data.classes)


def svhn(name: str, root: Path) -> ImageSet:
    """Street View House Numbers, test split."""
    data = torchvision_set("SVHN", root / "svhn", split="test")
    digits = [str(digit) for digit in range(10)]
    return _arrays(name, data.data.transpose(0, 2, 3, 1), data.labels, digits)


def texture(name: str, root: Path) -> ImageSet:
    """Describable Textures (DTD), all three splits: the paper's Texture."""
    torchvision_set("DTD", root, split="test")
    return folder(name, root / "dtd" / "dtd" / "images")


def torchvision_set(kind: str, root: Path, **options: Any) -> Any:
    """A torchvision data set from `root`, downloaded to it where it is not there.

    Raises:
        OSError: neither on disk nor to be downloaded.
    """
    import torchvision

    make: Callable[..., Any] = getattr(torchvision.datasets, kind)
    with contextlib.redirect_stdout(sys.stderr):  # its notes on downloads
        try:
            return make(root, **options)
        except Exception:  # not on disk, or not whole
            pass
        try:
            return make(root, **options, download=True)
        except Exception as error:  # whatever urllib, tarfile or torchvision raise
            raise OSError(
                f"torchvision finds no {kind} and cannot download it: {first_line(error)}"
            ) from error
