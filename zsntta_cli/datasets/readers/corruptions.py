"""Corrupted test sets, named with corruption and severity: `cifar10-c:fog:1`, `imagenet-c:all:1`.

Benchmarking Neural Network Robustness to Common Corruptions and Perturbations
(arXiv:1903.12261). CIFAR-C has one .npy a corruption: the test set five times, by severity.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.catalogue import CORRUPTIONS
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers.archives import BAD_NPY, array_in
from zsntta_cli.datasets.readers.folders import require_path
from zsntta_cli.datasets.readers.imagenet import by_wnids
from zsntta_cli.errors import DatasetError

ALL, SEVERITIES = "all", 5  # the 15 corruptions one after the other
EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")  # in the archives too

# In torchvision's label order, which is the alphabet's.
CIFAR10 = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
CIFAR100 = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle",
    "bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle",
    "caterpillar", "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch",
    "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox",
    "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom",
    "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
    "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road",
    "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake",
    "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone",
    "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale",
    "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip


def parameters(name: str) -> tuple[tuple[str, ...], int]:
    """The corruptions and the severity that follow a set's name.

    Raises:
        DatasetError: they are missing or unknown.
    """
    base, *choices = name.split(":")
    corruption, severity = choices if len(choices) == 2 else ("", "")
    levels = [str(level) for level in range(1, SEVERITIES + 1)]
    if corruption not in (ALL, *CORRUPTIONS, *EXTRA) or severity not in levels:
        raise DatasetError(
            f"'{name}' must be {base}:CORRUPTION:SEVERITY, as in {base}:fog:1, with severity 1 to "
            f"{SEVERITIES} and corruption {ALL}, {', '.join((*CORRUPTIONS, *EXTRA))}."
        )
    return CORRUPTIONS if corruption == ALL else (corruption,), int(severity)


def imagenet_c(name: str, root: Path) -> ImageSet:
    """ImageNet-C: `imagenet-c/CORRUPTION/SEVERITY/WNID/*.JPEG`."""
    corruptions, severity = parameters(name)
    return by_wnids(name, root, [f"imagenet-c/{c}/{severity}" for c in corruptions])


def cifar_c(name: str, root: Path, *, path: str, classes: str) -> ImageSet:
    """CIFAR-10-C or CIFAR-100-C: `labels.npy` and one .npy a corruption, also in their tar."""
    corruptions, severity = parameters(name)
    class_names = CIFAR10 if classes == "cifar10" else CIFAR100
    read = partial(array_in, name, root / f"{path}.tar")
    if (root / path).exists() or not (root / f"{path}.tar").is_file():
        read = partial(_array, name, root / path)
    labels = read("labels.npy")
    pixels = [read(f"{c}.npy") for c in corruptions]
    _check(name, labels, pixels, len(class_names))
    size = len(labels) // SEVERITIES
    rows = slice((severity - 1) * size, severity * size)
    blocks = [array[rows] for array in pixels]
    return ImageSet(
        name,
        _BlockImage(blocks),
        np.tile(labels[rows].astype(np.int32), len(blocks)),
        [f"{corruption}/{i:05d}" for corruption in corruptions for i in range(size)],
        class_names,
        _digest(blocks),
    )


def _array(name: str, folder: Path, file: str) -> NDArray[Any]:
    path = folder / file
    try:
        return np.load(require_path(path), mmap_mode="r", allow_pickle=False)
    except BAD_NPY as error:
        raise DatasetError(f"data set '{name}': {path} is broken or no .npy file.") from error


def _check(
    name: str, labels: NDArray[Any], pixels: Sequence[NDArray[Any]], class_count: int
) -> None:
    shape = (len(labels), 32, 32, 3) if labels.ndim == 1 else ()
    fits = all(array.shape == shape and array.dtype == np.uint8 for array in pixels)
    if not fits or not len(labels) or len(labels) % SEVERITIES:
        raise DatasetError(
            f"data set '{name}': its .npy files are not CIFAR-C's: labels (N,) and images "
            f"(N, 32, 32, 3) of bytes, {SEVERITIES} severities one after the other."
        )
    if labels.min() < 0 or labels.max() >= class_count:
        raise DatasetError(
            f"data set '{name}': labels.npy has label {labels.max()}, but there are {class_count} "
            f"classes."
        )


def _digest(blocks: Sequence[NDArray[np.uint8]]) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


@dataclass(frozen=True)
class _BlockImage:
    """Read image i of arrays (N, 32, 32, 3) of bytes, one after the other."""

    blocks: Sequence[NDArray[np.uint8]]

    def __call__(self, i: int) -> Image.Image:
        block, row = divmod(i, len(self.blocks[0]))
        return Image.fromarray(np.asarray(self.blocks[block][row]))
