"""Classes from example photos: features that replace text features, and a scale of their logits.

A class's feature is the unit mean of its photos' unit features. Cosines of an image with images are
higher and closer together than those with texts, so the encoder's own scale does not fit. The
examples alone determine the scale: each photo is left out, and compared with the classes that the
others form.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.tree import LeftOut, is_hidden
from zsntta_cli.detection.encoding import Encoding, encode
from zsntta_cli.detection.inputs import checked_rows
from zsntta_cli.detection.names import names_of
from zsntta_cli.detection.sources import Photo, photos_in
from zsntta_cli.errors import DatasetError, SettingsError, StoreError, counted, first_line, short
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import PHOTOS

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder

_SCALES = (1.0, 1000.0)  # between which the scale is sought
_HALVINGS = 24  # of that range's logarithm
# Above the likeliest scale fewer clean images are flagged and no less noise is found: on Pets, Cars
# and ImageNet with 2 to 8 photos a class, clean streams gain 4.5 points, streams with noise none.
_SHARPER = 1.5
_ONE_CLASS = 100.0  # there the logit is standardised: any scale gives the same decisions

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class PhotoClasses(NamedTuple):
    """Classes made from example photos."""

    names: tuple[str, ...]
    features: NDArray[np.float32]  # (C, D) unit norm: what text features are of names
    scale: float  # of their logits
    right: int  # photos nearest to their own class when they were left out
    judged: int  # photos that were left out: those of classes with two or more


def photo_classes(folder: Path, encoding: Encoding) -> PhotoClasses:
    """Classes from the example photos in a folder.

    Photos that cannot be read are left out, with a warning.

    Raises:
        DatasetError: there is no such folder, it has no subfolders, no photo of a class can be
            read, a photo is in two classes, or no class has two photos.
    """
    names, photos, labels = _examples(folder)
    encoding.encode(photos, "example photos")
    note, failed = encoding.reporter.note, [photo for photo in photos if photo.error]
    readable = [pair for pair in zip(photos, labels, strict=True) if not pair[0].error]
    counts = Counter(label for _, label in readable)
    for label, name in enumerate(names):
        if not counts[label]:
            first = photos[labels.index(label)]
            wrong = f"no photo of the class '{short(name)}' can be read"
            raise DatasetError(f"{wrong} ({first.source}: {first.error}).")
    if failed:
        unread = f"{len(failed):,} of {len(photos):,} example photos cannot be read"
        note(f"warning: {unread} (the first: {failed[0].source}: {failed[0].error}).")
    single = [name for label, name in enumerate(names) if counts[label] == 1]
    if single and len(names) > 1:
        few = short(", ".join(single))
        note(f"warning: classes with only one example photo: {few}; give 2 to 8 for each.")
    by_features: dict[bytes, tuple[Photo, int]] = {}
    for photo, label in readable:
        assert photo.features is not None
        other, of_other = by_features.setdefault(photo.features.tobytes(), (photo, label))
        if of_other != label:
            raise DatasetError(
                f"{other.source} and {photo.source} are the same photo, once as "
                f"'{short(names[of_other])}' and once as '{short(names[label])}': remove one."
            )
    features = np.array([photo.features for photo, _ in readable], np.float32)
    classes = _of_folder(folder, features, [label for _, label in readable], names)
    of_photos = counted(len(readable), "example photo")
    line = f"note: {counted(len(names), 'class', 'classes')} from {of_photos}"
    if len(names) > 1:
        right = f"{classes.right:,} of {classes.judged:,} are nearest to their class when left out"
        line += f": {right} (logit scale {classes.scale:g})"
    note(f"{line}.")
    return classes


def classes_of(encoder: "Encoder", folder: str | Path) -> PhotoClasses:
    """Classes from the example photos in a folder, for use in Python.

    Raises:
        DatasetError: as `photo_classes`, or any photo cannot be read.
    """
    names, photos, labels = _examples(Path(folder).expanduser())
    features = encode(encoder, [photo.source for photo in photos])
    return _of_folder(Path(folder), features, labels, names)


def _examples(folder: Path) -> tuple[tuple[str, ...], list[Photo], list[int]]:
    """The classes of a folder, all photos within their subfolders, and their classes' numbers."""
    try:
        entries = sorted(folder.iterdir(), key=lambda path: path.name)
    except (OSError, ValueError) as error:  # a NUL in its path
        wrong = f"cannot read the example photos in {folder} ({first_line(error)})."
        raise DatasetError(wrong) from error
    folders = [path for path in entries if path.is_dir() and not is_hidden(path.name)]
    if not folders:
        wants = "it must have a folder for each class, with 2 to 8 photos in it"
        raise DatasetError(f"{folder} has no folders: {wants}.")
    photos, labels = list[Photo](), list[int]()
    for label, path in enumerate(folders):
        photos += photos_in(path, LeftOut())
        if len(photos) == len(labels):
            raise DatasetError(f"the class '{short(path.name)}' has no photo in {path}.")
        labels += [label] * (len(photos) - len(labels))
    return names_of([path.name for path in folders]), photos, labels


def _of_folder(
    folder: Path, features: NDArray[np.float32], labels: Sequence[int], names: tuple[str, ...]
) -> PhotoClasses:
    try:
        return class_features(features, labels, names)
    except SettingsError as error:
        raise DatasetError(f"{folder}: {error}") from error


def add_to_set(path: Path, folder: Path, classes: PhotoClasses) -> None:
    """Store classes made of photos with a cached set that has the same class names.

    If the file already has features of the same photos, they stay.

    Raises:
        DatasetError: a class of the set has no photos, or photos belong to no class of the set.
        StoreError: the file has classes made from other photos.
    """
    features = store.read(path)
    names = features.class_names
    lacking, strange = set(names) - set(classes.names), set(classes.names) - set(names)
    if lacking or strange:
        listed = short(", ".join(f"'{name}'" for name in sorted(lacking or strange)), 100)
        what = f"no photos of {listed}" if lacking else f"photos of other classes, {listed}"
        raise DatasetError(
            f"{folder} has {what}: its folders must have the names of the classes of "
            f"{features.name}."
        )
    features_now = classes.features[[classes.names.index(name) for name in names]]
    before = features.texts.get(PHOTOS)
    if before is None:
        text = Text(PHOTOS, features_now, classes.scale)
        store.write(replace(features, texts={**features.texts, PHOTOS: text}))
    elif not np.array_equal(before.features, features_now) or before.logit_scale != classes.scale:
        raise StoreError(
            f"{path} has classes made from other photos: add --overwrite to make it again."
        )


def class_features(
    features: ArrayLike, labels: ArrayLike, names: tuple[str, ...] = ()
) -> PhotoClasses:
    """Classes from example features (N, D) with their classes' numbers (N,), 0 to C - 1.

    A photo that occurs twice in its class counts once, and the order of photos does not matter.

    Raises:
        SettingsError: features or labels are invalid, a class has no photo, or none of several
            classes has two different ones.
    """
    rows, classes = checked_rows("features", features), np.asarray(labels)
    is_one_each = classes.shape == (len(rows),) and classes.dtype.kind in "iu"
    check(is_one_each, f"labels must be whole numbers, one for each of {len(rows):,} features.")
    check(len(rows) > 0, "there are no example photos: give one or more for each class.")
    check(int(classes.min()) >= 0, f"a label is {classes.min()}, must be 0 or more.")
    for label in {*range(int(classes.max()))} - {*classes.tolist()}:
        raise SettingsError(f"class {label} has no example photo.")
    check(bool(rows.any(axis=1).all()), "features have a row of zeros.")
    # Different photos of each class, sorted, so that their order does not change sums.
    different = np.unique(np.column_stack([classes, unit(rows.astype(np.float64))]), axis=0)
    x, y = different[:, 1:], different[:, 0].astype(np.int64)
    sums = np.zeros((y.max() + 1, x.shape[1]))
    np.add.at(sums, y, x)
    check(bool((np.linalg.norm(sums, axis=1) > 0).all()), "the photos of a class cancel out.")
    cosines, labels = _left_out(x, y, sums)
    right = int((cosines.argmax(1) == labels).sum())
    scale = _ONE_CLASS if len(sums) == 1 else _scale(cosines, labels)
    return PhotoClasses(names, unit(sums).astype(np.float32), scale, right, len(labels))


def _left_out(x: Floats, y: Labels, sums: Floats) -> tuple[Floats, Labels]:
    """Cosines (M, C) of photos that are left out of their own class, and these classes (M,).

    The mean of fewer photos is less like any photo, so each other class lacks one as well: its
    cosine is the mean over leaving out each of its photos.
    """
    sizes = np.bincount(y)
    can_lack = sizes[y] > 1
    lacking = unit(np.where(can_lack[:, None], sums[y] - x, x))  # (N, D) a class without a photo
    mean_features = np.zeros_like(sums)
    np.add.at(mean_features, y, lacking)
    mean_features /= sizes[:, None]
    cosines, labels = x[can_lack] @ mean_features.T, y[can_lack]
    cosines[np.arange(len(labels)), labels] = np.vecdot(x, lacking)[can_lack]
    return cosines, labels


def _scale(cosines: Floats, labels: Labels) -> float:
    """The scale with the largest likelihood of the photos' own classes (M,), and somewhat above.

    If all of a few photos get their own class, no scale would be too large. So each is assumed to
    be of another class with the probability 1 / (M + 2), as in Platt's scaling. The likelihood is
    concave in the scale, and its slope is the wanted mean cosine minus the expected one.
    """
    count, classes = cosines.shape
    if count == 0:
        raise SettingsError("no class has two different photos: give 2 to 8 for each.")
    wrong = 1 / (count + 2)
    at_own = cosines[np.arange(count), labels]
    at_others = (cosines.sum(1) - at_own) / (classes - 1)
    wanted = float(((1 - wrong) * at_own + wrong * at_others).mean())
    low, high = _SCALES
    below_best = cosines - cosines.max(1, keepdims=True)
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        likely = np.exp(middle * below_best)
        expected = float((np.vecdot(likely, cosines) / likely.sum(1)).mean())
        low, high = (middle, high) if expected < wanted else (low, middle)
    return float(f"{_SHARPER * low:.3g}")  # the last digits may differ between machines
