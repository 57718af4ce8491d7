"""Sets in their originals' files, by torchvision, which is imported when one of them is read."""

import contextlib
import hashlib
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.images import ImageSet, numbered
from zsntta_cli.datasets.presence import AS_IS, USABLE, traces
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
    return _cifar(name, "CIFAR10", root, "labels")


def cifar100(name: str, root: Path) -> ImageSet:
    """CIFAR-100, test split, fine labels."""
    return _cifar(name, "CIFAR100", root, "fine_labels")


def _cifar(name: str, kind: str, root: Path, labels: str) -> ImageSet:
    """The test split of CIFAR: a pickle of the images, and one of the class names."""
    import torchvision

    facts = getattr(torchvision.datasets, kind)
    base = root / facts.base_folder
    _have(name, kind, root, base, train=False)
    (file, checksum), meta = facts.test_list[0], facts.meta
    batch = _pickled(name, base / file, checksum, ("data", labels))
    names = _pickled(name, base / meta["filename"], meta["md5"], (meta["key"],))
    pixels = np.asarray(batch["data"])
    if pixels.shape != (len(batch[labels]), 3072) or pixels.dtype != np.uint8:
        raise DatasetError(
            f"data set '{name}': 'data' in {base / file} is {pixels.dtype} {pixels.shape}, must be "
            f"bytes ({len(batch[labels])}, 3072)."
        )
    planes = pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return _arrays(name, planes, batch[labels], names[meta["key"]])


class _Plain(pickle.Unpickler):
    """Unpickle arrays, lists and texts alone: a file whose checksum differs is anybody's."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse what is no part of an array."""
        is_array = module.partition(".")[0] == "numpy" and name in (
            "_reconstruct", "ndarray", "dtype", "_frombuffer",
        )  # fmt: skip
        if is_array or (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it has a {module}.{name}, must have arrays and lists")


def _pickled(name: str, path: Path, checksum: str, keys: Sequence[str]) -> Any:
    """The dict of a pickle, with some keys at least."""
    _check_digest(name, require_path(path), checksum)
    try:
        with path.open("rb") as file:
            content = _Plain(file, encoding="latin1").load()
    except Exception as error:  # of a damaged pickle nearly anything
        raise DatasetError(
            f"data set '{name}': {path} is no whole pickle ({first_line(error)})."
        ) from error
    held = list(content) if isinstance(content, dict) else [f"a {type(content).__name__}"]
    if missing := [key for key in keys if key not in held]:
        raise DatasetError(
            f"data set '{name}': {path} holds {', '.join(map(str, held)) or 'nothing'}, must hold "
            f"{' and '.join(missing)}."
        )
    return content


def _check_digest(name: str, path: Path, checksum: str) -> None:
    """Refuse a file that is not as published, unless it is taken as it is."""
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "md5").hexdigest()
    if actual != checksum and not AS_IS.get():
        raise DatasetError(
            f"data set '{name}': {path} is not the published file: its md5 is {actual}, must be "
            f"{checksum}.",
            remedy=USABLE,
        )


def _have(name: str, kind: str, root: Path, place: Path, **options: Any) -> None:
    """Have the files of a set at a place: what lies there is left alone, else it comes.

    An archive that lies where it would be fetched to is checked and unpacked; nothing is fetched
    while it is there.
    """
    entry = CATALOGUE[name]
    if place.exists():
        return
    for file in entry.files:
        archive, target = root / file.file, root / file.unpacks
        if file.unpacks and archive.is_file() and not target.exists():
            from zsntta_cli.datasets import fetching

            _check_digest(name, archive, file.checksum.partition(":")[2])
            fetching.unpack(archive, target)
    if place.exists() or traces(entry, root):
        require_path(place)
        return
    torchvision_set(kind, place.parent if kind == "SVHN" else root, **options)


def svhn(name: str, root: Path) -> ImageSet:
    """Street View House Numbers, test split: the digit 0 is the label 10 in its file."""
    import scipy.io
    import torchvision

    _, file, checksum = torchvision.datasets.SVHN.split_list["test"]
    path = root / "svhn" / file
    _have(name, "SVHN", root, path, split="test")
    _check_digest(name, path, checksum)
    try:
        content = scipy.io.loadmat(path)
    except Exception as error:  # whatever scipy raises of a file that is none
        raise DatasetError(
            f"data set '{name}': {path} is no whole .mat file ({first_line(error)})."
        ) from error
    if missing := [key for key in ("X", "y") if key not in content]:
        held = ", ".join(key for key in content if not key.startswith("__"))
        raise DatasetError(
            f"data set '{name}': {path} holds {held or 'nothing'}, must hold "
            f"{' and '.join(missing)}."
        )
    labels = content["y"].astype(np.int64).ravel() % 10
    return _arrays(name, content["X"].transpose(3, 0, 1, 2), labels, [str(i) for i in range(10)])


def texture(name: str, root: Path) -> ImageSet:
    """Describable Textures (DTD), all three splits: the paper's Texture; labels/ is not needed."""
    base = root / "dtd" / "dtd"
    _have(name, "DTD", root, base, split="test")
    return folder(name, require_path(base / "images"))


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
    base = root / "food-101"
    _have(name, "Food101", root, base, split="test")
    for file in ("meta/test.json", "images"):
        require_path(base / file)
    data = torchvision_set("Food101", root, download=False, split="test")
    names = [class_name.replace("_", " ") for class_name in data.classes]
    return listed_images(name, root / "food-101" / "images", data._image_files, data._labels, names)


def pets37(name: str, root: Path) -> ImageSet:
    """Oxford-IIIT Pet, trainval and test."""
    base = root / "oxford-iiit-pet"
    for folder_name in ("images", "annotations"):
        _have(name, "OxfordIIITPet", root, base / folder_name, split="test")
    for file in ("annotations/trainval.txt", "annotations/test.txt", "images"):
        require_path(base / file)
    splits = ("trainval", "test")
    parts = [torchvision_set("OxfordIIITPet", root, download=False, split=s) for s in splits]
    if parts[0].classes != parts[1].classes:
        raise DatasetError(
            f"data set '{name}': trainval.txt and test.txt in {root} name different breeds."
        )
    paths = [path for part in parts for path in part._images]
    labels = [label for part in parts for label in part._labels]
    return listed_images(name, root / "oxford-iiit-pet" / "images", paths, labels, parts[0].classes)


def torchvision_set(kind: str, root: Path, download: bool = True, **options: Any) -> Any:
    """A torchvision data set from `root`, downloaded to it where it is not there.

    Raises:
        OSError: neither on disk nor to be downloaded.
    """
    import torchvision

    make: Callable[..., Any] = getattr(torchvision.datasets, kind)
    with contextlib.redirect_stdout(sys.stderr):  # its notes on downloads
        try:
            return make(root, **options)
        except Exception as error:  # not on disk, or not whole
            if not download:
                raise OSError(f"torchvision cannot read {kind}: {first_line(error)}") from error
        try:
            return make(root, **options, download=True)
        except Exception as error:  # whatever urllib, tarfile or torchvision raise
            raise OSError(
                f"torchvision finds no {kind} and cannot download it: {first_line(error)}"
            ) from error
