"""Readers: from files to an ImageSet. torchvision is imported when one of its sets is read."""

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

from zsntta_cli.datasets import builtin as rendered
from zsntta_cli.datasets.images import ImageSet, numbered
from zsntta_cli.errors import DatasetError

_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


def builtin(name: str, _root: Path) -> ImageSet:
    """A built-in set; needs no files."""
    images = rendered.render(name)
    version = f"rendering {rendered.VERSION}"
    return ImageSet(
        name, images.image, images.labels, images.sample_ids, images.class_names, version
    )


def folder(name: str, path: Path) -> ImageSet:
    """A folder of images: class subfolders are labels; without subfolders there are no labels.

    Raises:
        DatasetError: no such folder, no image in it, or images beside class folders.
    """
    if not path.is_dir():
        raise DatasetError(f"data set '{name}': there is no folder {path}.")
    found = sorted(p for p in path.rglob("*") if p.suffix.lower() in _SUFFIXES and p.is_file())
    if not found:
        raise DatasetError(f"data set '{name}': no image in {path} (looked for .jpg, .png, …).")
    classes = [p.relative_to(path).parts[0] if p.parent != path else "" for p in found]
    names = sorted(set(classes))
    if "" in names and len(names) > 1:
        raise DatasetError(
            f"data set '{name}': {path} has images beside class folders, such as "
            f"{found[classes.index('')].name}: move them into a folder of their class."
        )
    index = {class_name: -1 if class_name == "" else i for i, class_name in enumerate(names)}
    sizes = ",".join(str(p.stat().st_size) for p in found)
    return ImageSet(
        name,
        _FileImage(found),
        np.array([index[c] for c in classes], np.int32),
        [p.relative_to(path).as_posix() for p in found],
        [] if names == [""] else names,
        fingerprint=sizes,
    )


@dataclass(frozen=True)
class _FileImage:
    """Read image i of a list of files."""

    paths: Sequence[Path]

    def __call__(self, i: int) -> Image.Image:
        with Image.open(self.paths[i]) as image:
            return image.convert("RGB")


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
    data = _torchvision("CIFAR10", name, root, train=False)
    return _arrays(name, data.data, data.targets, data.classes)


def cifar100(name: str, root: Path) -> ImageSet:
    """CIFAR-100, test split, fine labels."""
    data = _torchvision("CIFAR100", name, root, train=False)
    return _arrays(name, data.data, data.targets, data.classes)


def svhn(name: str, root: Path) -> ImageSet:
    """Street View House Numbers, test split."""
    data = _torchvision("SVHN", name, root / "svhn", split="test")
    digits = [str(digit) for digit in range(10)]
    return _arrays(name, data.data.transpose(0, 2, 3, 1), data.labels, digits)


def texture(name: str, root: Path) -> ImageSet:
    """Describable Textures (DTD), all three splits: the paper's Texture."""
    _torchvision("DTD", name, root, split="test")
    return folder(name, root / "dtd" / "dtd" / "images")


def _torchvision(kind: str, name: str, root: Path, **options: Any) -> Any:
    """A torchvision data set from `root`, downloaded to it where it is not there.

    Raises:
        DatasetError: neither on disk nor to be downloaded.
    """
    import torchvision

    make: Callable[..., Any] = getattr(torchvision.datasets, kind)
    with contextlib.redirect_stdout(sys.stderr):  # its notes on downloads
        try:
            return make(root, **options)
        except RuntimeError:
            pass  # not on disk, or not whole
        try:
            return make(root, **options, download=True)
        except Exception as error:  # whatever urllib, tarfile or torchvision raise
            reason = str(error).splitlines()[0] if str(error) else repr(error)
            raise DatasetError(
                f"'{name}' is not whole in {root} and cannot be downloaded ({reason}): put "
                f"torchvision's {kind} files there, or name their folder with --data-root."
            ) from error
