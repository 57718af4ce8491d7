"""Sets in their originals' files: pickles, .mat, .json and text files, and folders of images."""

import hashlib
import json
import pickle
from collections.abc import Iterable, Sequence
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
from zsntta_cli.errors import DatasetError, first_line, first_of
from zsntta_cli.progress import ConsoleReporter

CHECKSUMS = {  # md5 of files within archives, as torchvision has them too
    "cifar-10-batches-py/test_batch": "40351d587109b95175f43aff81a1287e",
    "cifar-10-batches-py/batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
    "cifar-100-python/test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
    "cifar-100-python/meta": "7973b15100ade9c7d40fb424638fde48",
}


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
    base = "cifar-10-batches-py"
    return _cifar(name, root, (f"{base}/test_batch", "labels"), (f"{base}/batches.meta", "label"))


def cifar100(name: str, root: Path) -> ImageSet:
    """CIFAR-100, test split, fine labels."""
    base = "cifar-100-python"
    return _cifar(name, root, (f"{base}/test", "fine_labels"), (f"{base}/meta", "fine_label"))


def _cifar(name: str, root: Path, images: tuple[str, str], names: tuple[str, str]) -> ImageSet:
    """The test split of CIFAR: a pickle of the images, and one of the class names."""
    (file, labels), (meta, kind) = images, names
    path = root / file
    _have(name, root, path.parent)
    batch = _pickled(name, path, CHECKSUMS[file], ("data", labels))
    class_names = _pickled(name, root / meta, CHECKSUMS[meta], (f"{kind}_names",))[f"{kind}_names"]
    pixels = np.asarray(batch["data"])
    if pixels.shape != (len(batch[labels]), 3072) or pixels.dtype != np.uint8:
        raise DatasetError(
            f"data set '{name}': 'data' in {path} is {pixels.dtype} {pixels.shape}, must be bytes "
            f"({len(batch[labels])}, 3072)."
        )
    planes = pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return _arrays(name, planes, batch[labels], class_names)


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
    _check_keys(
        name, path, content if isinstance(content, dict) else [f"a {type(content).__name__}"], keys
    )
    return content


def _check_keys(name: str, path: Path, held: Iterable[Any], keys: Sequence[str]) -> None:
    """Refuse a file that does not hold what it should, under the names that are known."""
    names = [str(key) for key in held if not str(key).startswith("__")]
    if missing := [key for key in keys if key not in names]:
        raise DatasetError(
            f"data set '{name}': {path} holds {first_of(names) or 'nothing'}, must hold "
            f"{' and '.join(missing)}."
        )


def _mat(name: str, path: Path, *keys: str) -> list[Any]:
    """The arrays of a .mat file that have some names."""
    import scipy.io

    try:
        content = scipy.io.loadmat(require_path(path), squeeze_me=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever scipy raises of a file that is none
        raise DatasetError(
            f"data set '{name}': {path} is no whole .mat file ({first_line(error)})."
        ) from error
    _check_keys(name, path, content, keys)
    return [content[key] for key in keys]


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


def _have(name: str, root: Path, place: Path) -> None:
    """Have the files of a set at a place: what lies there is left alone, else it comes.

    An archive that lies where it would be fetched to is checked and unpacked; nothing is fetched
    while it is there.

    Raises:
        OSError: it cannot be fetched.
    """
    if place.exists():
        return
    from zsntta_cli.datasets import fetching

    entry = CATALOGUE[name]
    for file in entry.files:
        archive, target = root / file.file, root / file.unpacks
        if file.unpacks and archive.is_file() and not target.exists():
            _check_digest(name, archive, file.checksum.partition(":")[2])
            fetching.unpack(archive, target)
    if place.exists() or traces(entry, root):
        require_path(place)
        return
    try:
        fetching.fetch(name, entry, root, ConsoleReporter())
    except DatasetError as error:
        raise OSError(str(error).removesuffix(".")) from error


def svhn(name: str, root: Path) -> ImageSet:
    """Street View House Numbers, test split: the digit 0 is the label 10 in its file."""
    [file] = CATALOGUE[name].files
    path = root / file.file
    _have(name, root, path)
    _check_digest(name, path, file.checksum.partition(":")[2])
    pixels, digits = _mat(name, path, "X", "y")
    labels = (np.atleast_1d(digits).astype(np.int64) % 10).tolist()
    if pixels.shape != (32, 32, 3, len(labels)) or pixels.dtype != np.uint8:
        raise DatasetError(
            f"data set '{name}': 'X' in {path} is {pixels.dtype} {pixels.shape}, must be bytes "
            f"(32, 32, 3, {len(labels)})."
        )
    return _arrays(name, pixels.transpose(3, 0, 1, 2), labels, [str(i) for i in range(10)])


def texture(name: str, root: Path) -> ImageSet:
    """Describable Textures (DTD), all three splits: the paper's Texture; labels/ is not needed."""
    images = next((p for p in (root / "dtd/dtd/images", root / "dtd/images") if p.is_dir()), None)
    if images is None:
        _have(name, root, root / "dtd" / "dtd")
    return folder(name, images or require_path(root / "dtd" / "dtd" / "images"))


_CARS_NAMES, _CARS_TEST = "devkit/cars_meta.mat", "cars_test_annos_withlabels.mat"


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
    """Stanford Cars, train and test, classes from 1; they cannot be downloaded."""
    base = root / "stanford_cars"
    listed = {"cars_train": "devkit/cars_train_annos.mat", "cars_test": _CARS_TEST}
    for place in (*listed, *listed.values(), _CARS_NAMES):
        require_path(base / place)
    [names] = _mat(name, base / _CARS_NAMES, "class_names")
    paths, labels = list[Path](), list[int]()
    for part, file in listed.items():
        [rows] = _mat(name, base / file, "annotations")
        try:
            paths += [base / part / str(row) for row in np.atleast_1d(rows)["fname"]]
            labels += [int(row) - 1 for row in np.atleast_1d(rows)["class"]]
        except (ValueError, IndexError, TypeError) as error:
            raise DatasetError(
                f"data set '{name}': the annotations of {base / file} have no fname and class."
            ) from error
    return listed_images(name, base, paths, labels, [str(car) for car in np.atleast_1d(names)])


def food101(name: str, root: Path) -> ImageSet:
    """Food-101, test split, in the order of its folders: cheese plate (16), then cheesecake (17).

    The paper's released code names these two the other way round.
    """
    base = root / "food-101"
    _have(name, root, base)
    listed = require_path(base / "meta" / "test.json")
    images = require_path(base / "images")
    try:
        photos_of = json.loads(listed.read_bytes())
        paths = [images / f"{photo}.jpg" for photos in photos_of.values() for photo in photos]
        index = {folder_name: label for label, folder_name in enumerate(sorted(photos_of))}
        labels = [index[food] for food, photos in photos_of.items() for _ in photos]
    except (ValueError, AttributeError, TypeError) as error:
        raise DatasetError(
            f"data set '{name}': {listed} is no list of photos by class ({first_line(error)})."
        ) from error
    return listed_images(name, images, paths, labels, [food.replace("_", " ") for food in index])


def pets37(name: str, root: Path) -> ImageSet:
    """Oxford-IIIT Pet, trainval and test: lines of an image, and a class from 1."""
    base = root / "oxford-iiit-pet"
    for place in ("images", "annotations"):
        _have(name, root, base / place)
    images = require_path(base / "images")
    paths, labels, breeds_of = list[Path](), list[int](), list[list[tuple[int, str]]]()
    for split in ("trainval", "test"):
        rows = _pets(name, require_path(base / "annotations" / f"{split}.txt"))
        paths += [images / f"{photo}.jpg" for photo, _ in rows]
        labels += [label for _, label in rows]
        breeds_of.append(sorted({(label, photo.rpartition("_")[0]) for photo, label in rows}))
    if breeds_of[0] != breeds_of[1]:
        raise DatasetError(
            f"data set '{name}': trainval.txt and test.txt in {root} name different breeds."
        )
    names = [" ".join(word.title() for word in breed.split("_")) for _, breed in breeds_of[0]]
    return listed_images(name, images, paths, labels, names)


def _pets(name: str, path: Path) -> list[tuple[str, int]]:
    """The photos of one of the lists of Oxford-IIIT Pet, with labels from 0."""
    rows = [
        line.split() for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
    ]
    if not rows or not all(len(row) == 4 and row[1].isdigit() for row in rows):
        raise DatasetError(
            f"data set '{name}': {path} is not made of lines of an image, its class and two "
            f"numbers."
        )
    return [(row[0], int(row[1]) - 1) for row in rows]
