"""Known sets as they are published: by torchvision's own classes, by class folders, by lists.

A set is read from its first existing place below the data root. `known_sets.json` assigns each set
to one of these functions.
"""

import errno
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets import tree
from zsntta_cli.datasets.catalogue import CORRUPTIONS, first_place
from zsntta_cli.datasets.images import ImageSet, array_set, file_set, pick_rows, with_lists
from zsntta_cli.errors import DatasetError, counted, first_of
from zsntta_cli.files import scratch

# The 1000 wnids of ImageNet (from timm, Apache-2.0) with the curated names of CLIP (from open_clip,
# MIT), in standard order, and which of them ImageNet-A and ImageNet-R have.
_TABLE = Path(__file__).with_name("imagenet_classes.tsv")
ALL, SEVERITIES = "all", 5  # the 15 corruptions one after the other
EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")  # in the archives too


def existing(root: Path, *places: str) -> Path:
    """The first of some places that exists; FileNotFoundError names the first one."""
    if path := first_place(root, places):
        return path
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(root / places[0]))


# --- By class folders ---


def by_folder(name: str, root: Path, *, places: Sequence[str]) -> ImageSet:
    """The images of a folder or its archive."""
    return folder_set(name, existing(root, *places), places[0].rpartition("/")[2])


def folder_set(name: str, place: Path, within: str = "") -> ImageSet:
    """The images of a folder, a .tar or a .zip: class folders are labels; a flat one has none.

    Raises:
        DatasetError: there is no image, there are images beside class folders, or the archive is
            incomplete.
    """
    counts = tree.LeftOut()
    files = tree.images_in(place, within, counts)
    skipped = [*filter(None, [counts.words()])]
    if not files:
        raise DatasetError(f"no image in {'; skipped: '.join([str(place), *skipped])}.")
    classes = tree.in_order({file.parts[0] for file in files if len(file.parts) > 1})
    if classes and (beside := [file.id for file in files if len(file.parts) == 1]):
        stray = f"such as {beside[0]}: each must be in its class folder"
        raise DatasetError(f"{place} has images beside class folders, {stray}.")
    if classes and place.is_dir():
        folders = {p.name for p in place.iterdir() if p.is_dir() and not tree.is_hidden(p.name)}
        if empty := sorted(folders - {*classes}):
            count = counted(len(empty), "folder without images", "folders without images")
            skipped.append(f"{count} ({first_of(empty)})")
    index = {folder: label for label, folder in enumerate(classes)}
    labels = [index.get(file.parts[0], -1) for file in files]
    labels_from, left_out = "folders" if classes else "", ", ".join(skipped)
    return file_set(name, files, labels, classes, labels_from=labels_from, left_out=left_out)


def by_keys(name: str, places: Mapping[str, Path], names_by_folder: Mapping[str, str]) -> ImageSet:
    """The images of class folders, in the order of `names_by_folder`, from one place or several.

    `places` are keyed by the prefix of their images' ids.

    Raises:
        DatasetError: a class has no images, or there are images of an unknown class.
    """
    files, labels = list[tree.File](), list[int]()
    for prefix, place in places.items():
        by_class: dict[str, list[tree.File]] = {folder: [] for folder in names_by_folder}
        for file in tree.images_in(place):
            by_class.setdefault(file.parts[0] if len(file.parts) > 1 else ".", []).append(file)
        strange = sorted(by_class.keys() - names_by_folder.keys())
        if lacking := [folder for folder, images in by_class.items() if not images]:
            raise DatasetError(
                f"{len(lacking):,} of {len(names_by_folder):,} classes have no image in {place}, "
                f"such as {lacking[0]}{f'; it has {first_of(strange)}' if strange else ''}."
            )
        if strange:
            raise DatasetError(f"{place} has folders that are not classes: {first_of(strange)}.")
        for label, images in enumerate(by_class.values()):
            files += [replace(f, parts=(*Path(prefix).parts, *f.parts)) for f in images]
            labels += [label] * len(images)
    return file_set(name, files, labels, list(names_by_folder.values()))


# --- The ImageNet family: a folder a class, labels in ImageNet's standard order ---


@cache
def names_by_wnid(subset: str = "") -> dict[str, str]:
    """The 1000 class names by wnid, in standard order; only 200 for the subset "a" or "r"."""
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {wnid: name for wnid, name, subsets in rows if subset in subsets}


def by_wnid(
    name: str, root: Path, *, places: Sequence[str], subset: str = "", is_numbered: bool = False
) -> ImageSet:
    """The images of a set with a folder for each wnid, or in ImageNet-V2 for each label."""
    names = names_by_wnid(subset)
    if is_numbered:
        names = {str(label): name for label, name in enumerate(names.values())}
    return by_keys(name, {"": existing(root, *places)}, names)


def validation(name: str, root: Path) -> ImageSet:
    """The validation set, `imagenet/val/`, which torchvision makes once from tar and devkit."""
    folder = root / "imagenet"
    if not (folder / "val").exists() and (folder / "ILSVRC2012_img_val.tar").is_file():
        from torchvision.datasets import imagenet

        imagenet.parse_devkit_archive(folder)
        with scratch(folder, is_folder=True) as begun:
            imagenet.parse_val_archive(folder, folder=begun.name)
            os.rename(begun, folder / "val")
    return by_keys(name, {"": existing(folder, "val")}, names_by_wnid())


# --- By torchvision's classes, and by lists of their own ---


def listed(
    name: str, base: Path, paths: Sequence[str], labels: Sequence[int], names: Sequence[str]
) -> ImageSet:
    """Image files that a list names, in its order; the ids are the paths, relative to `base`.

    Raises:
        DatasetError: a file is missing, or a label has no class name.
    """
    places = [base / path for path in paths]
    if missing := [place for place in places if not place.is_file()]:
        number = f"{len(missing):,} of {len(paths):,} images"
        raise DatasetError(f"{number} are missing, such as {missing[0]}.")
    files = [
        tree.File(Path(path.lstrip("/")).parts, place.stat().st_size, place.read_bytes)
        for path, place in zip(paths, places, strict=True)
    ]
    return file_set(name, files, labels, names)


def cifar(name: str, root: Path, *, kind: str) -> ImageSet:
    """CIFAR-10 or CIFAR-100, test split, fine labels.

    Raises:
        DatasetError: its files are not the published ones: other pickles may be harmful.
    """
    from torchvision import datasets as published

    original: Any = getattr(published, kind)
    of_test = type(kind, (original,), {"train_list": []})  # the training batches are not needed
    folder = original.base_folder
    for file in (original.meta["filename"], original.test_list[0][0]):
        existing(root, f"{folder}/{file}")
    try:
        test = of_test(root, train=False)
    except RuntimeError as error:
        reason = "not the published ones by their md5, and other pickles are not opened"
        raise DatasetError(f"its files in {root / folder} are {reason}") from error
    return array_set(name, test.data, test.targets, test.classes)


def svhn(name: str, root: Path) -> ImageSet:
    """Street View House Numbers, test split: the digit 0 is the label 10 in its file."""
    from scipy.io import loadmat

    content = loadmat(existing(root, "svhn/test_32x32.mat"))
    pixels, labels = content["X"].transpose(3, 0, 1, 2), content["y"].ravel() % 10
    return array_set(name, pixels, labels, [*map(str, range(10))])


def food101(name: str, root: Path) -> ImageSet:
    """Food-101, test split, in the order of its folders: cheese plate (16), then cheesecake (17).

    The paper's released code swaps these two names.
    """
    from torchvision.datasets import Food101

    base = existing(root, "food-101/meta/test.json").parents[1] / "images"
    test: Any = Food101(root, split="test")
    names = [food.replace("_", " ") for food in test.classes]
    paths = [os.path.relpath(path, base) for path in test._image_files]
    return listed(name, base, paths, test._labels, names)


def pets37(name: str, root: Path) -> ImageSet:
    """Oxford-IIIT Pet, trainval and test."""
    from torchvision.datasets import OxfordIIITPet

    base = existing(root, "oxford-iiit-pet/images")
    train, test = (OxfordIIITPet(root, split) for split in ("trainval", "test"))
    paths = [os.path.relpath(path, base) for path in (*train._images, *test._images)]
    return listed(name, base, paths, train._labels + test._labels, train.classes)


def cars196(name: str, root: Path) -> ImageSet:
    """Stanford Cars, train and test; they cannot be downloaded."""
    from torchvision.datasets import StanfordCars

    base = root / "stanford_cars"
    for file in ("devkit/cars_train_annos.mat", "cars_test_annos_withlabels.mat"):
        existing(base, file)
    train, test = (StanfordCars(root, split) for split in ("train", "test"))
    samples = [*train._samples, *test._samples]
    paths = [os.path.relpath(path, base) for path, _ in samples]
    return listed(name, base, paths, [label for _, label in samples], train.classes)


def cub200(name: str, root: Path) -> ImageSet:
    """CUB-200-2011, train and test: three text files of `ID value` lines, classes from 1.

    "001.Black_footed_Albatross" is a Black footed Albatross in prompts.
    """
    base = root / "CUB_200_2011"
    classes, images, class_of = (
        dict(line.strip().split(maxsplit=1) for line in (base / file).read_text().splitlines())
        for file in ("classes.txt", "images.txt", "image_class_labels.txt")
    )
    order = sorted(classes, key=int)
    labels = [order.index(class_of[image]) for image in images]
    names = [classes[key].partition(".")[2].replace("_", " ") for key in order]
    return listed(name, base / "images", [*images.values()], labels, names)


# --- OpenOOD 1.5's (2306.09301) and CoOp's (arXiv 2109.01134) ---


def openood(name: str, root: Path, *, places: Sequence[str], list_file: str) -> ImageSet:
    """A set of OpenOOD: a folder or an archive, restricted to its list if there is one.

    Each line of a list has a path and a label, which is always -1.
    """
    images = by_folder(name, root, places=places)
    folders = (root, root / "benchmark_imglist" / "imagenet")
    lists = [folder / f"{part}{list_file}" for folder in folders for part in ("", "test_")]
    if (list_path := next(filter(Path.is_file, lists), None)) is None:
        return images
    paths = [line.rpartition(" ")[0].strip() for line in list_path.read_text().splitlines() if line]
    top, below = f"{places[0]}/", f"{places[0].partition('/')[2]}/"
    ids = {path.removeprefix(top).removeprefix(below) for path in paths}
    missing = sorted(ids - {*images.sample_ids})
    if missing or not ids:
        number = f"{len(missing):,} of {len(ids):,} images of {list_path}"
        raise DatasetError(f"{number} are missing, such as {first_of(missing, 1)}.")
    rows = [row for row, sample_id in enumerate(images.sample_ids) if sample_id in ids]
    return with_lists(pick_rows(images, np.array(rows)), [list_path])


def coop(name: str, root: Path, *, path: str, split: str, images: str) -> ImageSet:
    """The test split of one of CoOp's data sets, with the class names from its file.

    Its parts train, val and test are rows [path, label, class name]; paths of SUN397 begin with a
    slash.
    """
    base, file = root / path / images, root / path / split
    parts = json.loads(file.read_text())
    rows = [row for part in ("train", "val", "test") for row in parts[part]]
    names = dict(sorted((label, class_name) for _, label, class_name in rows))
    if list(names) != list(range(len(names))):
        raise DatasetError(f"the labels of {file} must be 0, 1, 2 and so on.")
    paths = [place.lstrip("/") for place, _, _ in parts["test"]]
    labels = [label for _, label, _ in parts["test"]]
    return with_lists(listed(name, base, paths, labels, [*names.values()]), [file])


def aircraft(name: str, root: Path) -> ImageSet:
    """FGVC-Aircraft's test split, by variant, from the set's own text files, as in CoOp."""
    base = root / "fgvc_aircraft"
    files = [base / "variants.txt", base / "images_variant_test.txt"]
    class_names, lines = (file.read_text().splitlines() for file in files)
    rows = [line.partition(" ") for line in lines]
    labels = [class_names.index(variant) for _, _, variant in rows]
    paths = [f"{number}.jpg" for number, _, _ in rows]
    return with_lists(listed(name, base / "images", paths, labels, class_names), files)


def coop_imagenet(name: str, root: Path) -> ImageSet:
    """ImageNet's validation set with the names of CoOp's classnames.txt, each after its wnid."""
    file = root / "imagenet" / "classnames.txt"
    rows = [line.split(maxsplit=1) for line in file.read_text().splitlines() if line.strip()]
    names = {wnid: class_name.strip() for wnid, class_name in sorted(rows)}
    base = existing(root, "imagenet/images/val", "imagenet/val")
    return with_lists(by_keys(name, {"": base}, names), [file])


# --- Corrupted sets (arXiv:1903.12261), of which one is named `cifar10-c:fog:1` ---


def corruptions_of(name: str) -> tuple[tuple[str, ...], int]:
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
    """ImageNet-C: `imagenet-c/CORRUPTION/SEVERITY/WNID/*.JPEG`; ids of several keep the prefix."""
    corruptions, severity = corruptions_of(name)
    places = [f"imagenet-c/{corruption}/{severity}" for corruption in corruptions]
    by_prefix = {p if len(places) > 1 else "": existing(root, p) for p in places}
    return by_keys(name, by_prefix, names_by_wnid())


def cifar_c(
    name: str, root: Path, *, places: Sequence[str], class_names: Sequence[str]
) -> ImageSet:
    """CIFAR-10-C or CIFAR-100-C: `labels.npy` and one .npy per corruption, also in their tar.

    Raises:
        DatasetError: a file is missing.
    """
    corruptions, severity = corruptions_of(name)
    place = existing(root, *places)
    files = {file.parts[-1]: file for file in tree.files_in(place)}

    def block(file: str) -> NDArray[Any]:
        """One severity of an array that has all of them, one after the other."""
        if file not in files:
            raise DatasetError(f"{place} has no {file}.")
        every = np.load(io.BytesIO(files[file].read()))
        # Without a copy, the other severities would stay in memory.
        return np.split(every, SEVERITIES)[severity - 1].copy()

    labels = np.tile(block("labels.npy"), len(corruptions))
    pixels = np.concatenate([block(f"{corruption}.npy") for corruption in corruptions])
    images = array_set(name, pixels, labels, class_names)
    count = len(images) // len(corruptions)
    ids = [f"{corruption}/{i:05d}" for corruption in corruptions for i in range(count)]
    return replace(images, sample_ids=ids)
