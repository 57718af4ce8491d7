"""Fine-grained sets: birds, cars, food and pets, in the originals' files."""

from pathlib import Path

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers.folders import existing, listed
from zsntta_cli.datasets.readers.originals import torchvision_set
from zsntta_cli.errors import DatasetError

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
    return listed(name, existing(base / "images"), paths, targets, names)


def _table(name: str, path: Path) -> dict[str, str]:
    """Lines of an id and a value."""
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
        existing(base / file)
    parts = [torchvision_set("StanfordCars", root, split=s) for s in ("train", "test")]
    samples = [sample for part in parts for sample in part._samples]
    paths = [Path(path) for path, _ in samples]
    return listed(name, base, paths, [int(label) for _, label in samples], parts[0].classes)


def food101(name: str, root: Path) -> ImageSet:
    """Food-101, test split, in torchvision's order: cheese plate (16) before cheesecake (17).

    The paper's released code names these two the other way round.
    """
    data = torchvision_set("Food101", root, split="test")
    names = [class_name.replace("_", " ") for class_name in data.classes]
    return listed(name, root / "food-101" / "images", data._image_files, data._labels, names)


def pets37(name: str, root: Path) -> ImageSet:
    """Oxford-IIIT Pet, trainval and test."""
    parts = [torchvision_set("OxfordIIITPet", root, split=s) for s in ("trainval", "test")]
    if parts[0].classes != parts[1].classes:
        raise DatasetError(
            f"data set '{name}': trainval.txt and test.txt in {root} name different breeds."
        )
    paths = [path for part in parts for path in part._images]
    labels = [label for part in parts for label in part._labels]
    return listed(name, root / "oxford-iiit-pet" / "images", paths, labels, parts[0].classes)
