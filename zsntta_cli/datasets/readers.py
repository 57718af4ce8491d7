"""Readers: from files to an ImageSet. torchvision is imported when one of its sets is read.

A reader takes the set's name and the data root. Where files are missing it may raise OSError:
`load_images` turns that into a line with the layout expected and where to get the set.
"""

import contextlib
import errno
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets import builtin as rendered
from zsntta_cli.datasets.images import SUFFIXES, ImageSet, numbered
from zsntta_cli.errors import DatasetError


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
    found = images_in(path)
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
    class_names = [] if names == [""] else names
    return listed(name, path, found, [index[c] for c in classes], class_names)


def unpacked(name: str, root: Path, *, path: str) -> ImageSet:
    """A known set: a folder of images at `path` under the data root, or the archive it comes in.

    The archive has the name of the path's first folder, as `iNaturalist.tar.gz` has.
    """
    packed = sorted(root.glob(f"{path.partition('/')[0]}.*"))
    if packed and not (root / path).exists():
        from zsntta_cli.datasets import archives  # a replay imports readers, but reads no archive

        return archives.archive(name, packed[0])
    return folder(name, existing(root / path))


def listed(
    name: str, base: Path, paths: Sequence[Path], labels: Sequence[int], class_names: Sequence[str]
) -> ImageSet:
    """Image files with their labels; the ids are the paths below `base`.

    Raises:
        DatasetError: a file is missing or a label has no class name.
        OSError: a file cannot be looked at.
    """
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise DatasetError(
            f"data set '{name}' is not whole: {len(missing):,} of {len(paths):,} images are "
            f"missing, such as {missing[0]}."
        )
    checked = _checked(name, labels, class_names)
    sizes = ",".join(str(path.stat().st_size) for path in paths)
    ids = [path.relative_to(base).as_posix() for path in paths]
    return ImageSet(name, _FileImage(paths), checked, ids, class_names, fingerprint=sizes)


def _checked(name: str, labels: Sequence[int], class_names: Sequence[str]) -> NDArray[np.int32]:
    array = np.asarray(labels, np.int32)
    if class_names and len(array) and not 0 <= array.min() <= array.max() < len(class_names):
        raise DatasetError(
            f"data set '{name}': labels run from {array.min()} to {array.max()}, but there are "
            f"{len(class_names)} class names."
        )
    return array


def images_in(path: Path) -> list[Path]:
    """All image files below a folder, sorted; without what macOS adds."""
    found = (p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    return sorted(p for p in found if "__MACOSX" not in p.parts and not p.name.startswith("._"))


def existing(path: Path) -> Path:
    """The path, if there is something.

    Raises:
        FileNotFoundError: there is not; `load_images` adds where to get the set.
    """
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return path


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
            reason = str(error).splitlines()[0] if str(error) else repr(error)
            raise OSError(
                f"torchvision finds no {kind} and cannot download it: {reason}"
            ) from error
