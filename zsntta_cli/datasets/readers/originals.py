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
from zsntta_cli.datasets.readers.folders import folder, listed_images, require_path
from zsntta_cli.errors import DatasetError, first_line


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


_CARS_FILES = (
    "cars_train", "cars_test", "cars_test_annos_withlabels.mat", "devkit/cars_meta.mat",
    "devkit/cars_train_annos.mat",
)  # fmt: skip


def cub200(name: str, root: Path) -> ImageSet:
    """CUB-200-2011, train and test: three text files of `ID value` lines, classes from 1."""
    base = root / "CUB_200_2011"
    classes = _table(name, base / "classes.txt")
    images = _table(name, base / "images.txt")
    labels = _table(name, base / "image_class_labels.txt")
    position = {class_id: label for label, class_id in enumerate(sorted(classes, key=int))}
    try:
        targets = [position[labels[image]] for image in images]
    except KeyError as error:
        raise DatasetError(
            f"data set '{name}': classes.txt, images.txt and image_class_labels.txt in {base} do "
            f"not fit: id {error.args[0]} is not in all of them."
        ) from error
    paths = [base / "images" / path for path in images.values()]
    names = [_bird(classes[class_id]) for class_id in position]
    return listed_images(name, require_path(base / "images"), paths, targets, names)


def _table(name: str, path: Path) -> dict[str, str]:
    """Read a file of lines of an id and a value."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    rows = [line.split(maxsplit=1) for line in lines if line.strip()]
    if any(len(row) != 2 or not row[0].isdigit() for row in rows):
        raise DatasetError(f"data set '{name}': {path} is not made of lines of an id and a value.")
    return {key: value.strip() for key, value in rows}


def _bird(folder: str) -> str:
    """A name for the prompt: "001.Black_footed_Albatross" is a Black footed Albatross."""
    return folder.partition(".")[2].replace("_", " ")


def cars196(name: str, root: Path) -> ImageSet:
    """Stanford Cars, train and test, as torchvision expects them; they cannot be downloaded."""
    base = root / "stanford_cars"
    for file in _CARS_FILES:
        require_path(base / file)
    parts = [torchvision_set("StanfordCars", root, split=s) for s in ("train", "test")]
    samples = [sample for part in parts for sample in part._samples]
    paths = [Path(path) for path, _ in samples]
    return listed_images(name, base, paths, [int(label) for _, label in samples], parts[0].classes)


def food101(name: str, root: Path) -> ImageSet:
    """Food-101, test split, in torchvision's order: cheese plate (16) before cheesecake (17).

    The paper's released code names these two the other way round.
    """
    data = torchvision_set("Food101", root, split="test")
    names = [class_name.replace("_", " ") for class_name in data.classes]
    return listed_images(name, root / "food-101" / "images", data._image_files, data._labels, names)


def pets37(name: str, root: Path) -> ImageSet:
    """Oxford-IIIT Pet, trainval and test."""
    parts = [torchvision_set("OxfordIIITPet", root, split=s) for s in ("trainval", "test")]
    if parts[0].classes != parts[1].classes:
        raise DatasetError(
            f"data set '{name}': trainval.txt and test.txt in {root} name different breeds."
        )
    paths = [path for part in parts for path in part._images]
    labels = [label for part in parts for label in part._labels]
    return listed_images(name, root / "oxford-iiit-pet" / "images", paths, labels, parts[0].classes)


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
