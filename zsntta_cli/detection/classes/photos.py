"""Classes from a folder of example photos, with a subfolder for each class."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.tree import is_hidden
from zsntta_cli.detection.classes.examples import ClassFeatures, class_features
from zsntta_cli.detection.encoding import Encoded, Encoding
from zsntta_cli.detection.inputs import check_class_names
from zsntta_cli.detection.sources import images_in
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.errors import DatasetError, SettingsError, StoreError, counted, first_line, short
from zsntta_cli.settings.prompts import PHOTOS


class PhotoClasses(NamedTuple):
    """Classes of a folder, with the features of their photos."""

    names: tuple[str, ...]
    classes: ClassFeatures
    photos: frozenset[bytes]  # bytes of features as they are kept


def photo_items(folder: Path) -> dict[str, list[Item]]:
    """The photos of each class: all photos within its subfolder.

    Raises:
        DatasetError: there is no such folder, it has no subfolders, or one of them has no photo.
    """
    try:
        entries = sorted(folder.iterdir(), key=lambda path: path.name)
    except (OSError, ValueError) as error:  # a NUL in its path
        wrong = f"cannot read the example photos in {folder} ({first_line(error)})."
        raise DatasetError(wrong) from error
    folders = [path for path in entries if path.is_dir() and not is_hidden(path.name)]
    if not folders:
        wants = "must have a folder for each class, with 2 to 8 photos in it"
        raise DatasetError(f"{folder} has no folders: {wants}.")
    items = {path.name: list(images_in(path)) for path in folders}
    for path in folders:
        if not items[path.name]:
            raise DatasetError(f"the class '{short(path.name)}' has no photo in {path}.")
    return items


def photo_classes(folder: Path, encoding: Encoding) -> PhotoClasses:
    """Classes from the example photos in a folder.

    Raises:
        DatasetError: as `photo_items`; no photo of a class can be read; a photo is in two classes;
            no class has two photos.
    """
    items = photo_items(folder)
    check_class_names(tuple(items))
    every = [item for of_class in items.values() for item in of_class]
    labels = np.repeat(np.arange(len(items)), [len(of_class) for of_class in items.values()])
    encoded = encoding.images(every, "example photos")
    names = tuple(items)
    for line in _warnings(names, encoded, labels):
        encoding.reporter.note(f"warning: {line}")
    read = [(one, int(i)) for one, i in zip(encoded, labels, strict=True) if not one.error]
    photos = _told_apart(names, read)
    features = np.array([one.features for one, _ in read], np.float32)
    try:
        classes = class_features(features, [i for _, i in read])
    except SettingsError as error:
        raise DatasetError(f"{folder}: {error}") from error
    encoding.reporter.note(_summary(len(names), len(read), classes))
    return PhotoClasses(names, classes, photos)


def add_to_set(path: Path, folder: Path, classes: PhotoClasses) -> None:
    """Store classes made of photos with a cached set that has the same class names.

    Features of the same photos that the file already has stay.

    Raises:
        DatasetError: a class of the set has no photos, or photos are of no class.
        StoreError: the file has classes of other photos.
    """
    features = store.read(path)
    names = features.class_names
    lacking, strange = set(names) - set(classes.names), set(classes.names) - set(names)
    if lacking or strange:
        listed = short(", ".join(f"'{name}'" for name in sorted(lacking or strange)), 100)
        what = f"no photos of {listed}" if lacking else f"photos of {listed}, which are no classes"
        raise DatasetError(
            f"{folder} has {what}: its folders must be named as the classes of {features.name} are."
        )
    features_now = classes.classes.features[[classes.names.index(name) for name in names]]
    before = features.texts.get(PHOTOS)
    if before is None:
        store.add_texts(path, [Text(PHOTOS, features_now, classes.classes.scale)])
    elif (
        not np.array_equal(before.features, features_now)
        or before.logit_scale != classes.classes.scale
    ):
        raise StoreError(
            f"{path} has classes made of other photos: add --overwrite to make it again."
        )


def _warnings(
    names: Sequence[str], encoded: Sequence[Encoded], labels: NDArray[np.integer]
) -> Iterator[str]:
    """Warnings about photos that cannot be read; DatasetError if a class has no other."""
    failed = [one for one in encoded if one.error]
    readable = np.bincount(labels, [not one.error for one in encoded], len(names))
    for name, i in zip(names, range(len(names)), strict=True):
        if not readable[i]:
            first = next(one for one, of in zip(encoded, labels, strict=True) if of == i)
            wrong = f"no photo of the class '{short(name)}' can be read"
            raise DatasetError(f"{wrong} ({first.item.source}: {first.error}).")
    if failed:
        first = failed[0]
        yield f"{len(failed):,} of {len(encoded):,} example photos cannot be read (the first: " + (
            f"{first.item.source}: {first.error})."
        )
    single = [name for name, count in zip(names, readable, strict=True) if count == 1]
    if single and len(names) > 1:
        yield f"classes with one example photo: {short(', '.join(single))}; give 2 to 8 of each."


def _told_apart(names: Sequence[str], read: Sequence[tuple[Encoded, int]]) -> frozenset[bytes]:
    """The photos by their features; DatasetError if one is an example of two classes."""
    place: dict[bytes, tuple[Encoded, int]] = {}
    for photo, label in read:
        assert photo.features is not None
        other, other_label = place.setdefault(photo.features.tobytes(), (photo, label))
        if other_label != label:
            raise DatasetError(
                f"{other.item.source} and {photo.item.source} are the same photo, an example of "
                f"'{short(names[other_label])}' and of '{short(names[label])}': remove one."
            )
    return frozenset(place)


def _summary(names: int, photos: int, classes: ClassFeatures) -> str:
    line = f"note: {counted(names, 'class', 'classes')} from {counted(photos, 'example photo')}"
    if names == 1:
        return f"{line.replace('classes', 'class')}."
    alone = f"{classes.right:,} of {classes.judged:,} are nearest to their class when left out"
    return f"{line}: {alone} (logit scale {classes.scale:g})."
