"""Classes from features of example photos: features that replace text features, and a scale.

A class's feature is the unit mean of its photos' unit features. Cosines of an image with images are
higher and closer together than those with texts, so the encoder's own scale does not fit. The
examples alone determine the scale: each photo is left out, and compared with the classes that the
others form.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zsntta_cli.detection.inputs import MeantScale, checked_matrix
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings.options import check

_SCALES = (1.0, 1000.0)  # between which the scale is sought
_HALVINGS = 24  # of that range's logarithm
# Above the likeliest scale fewer clean images are flagged and no less noise is found: on Pets, Cars
# and ImageNet with 2 to 8 photos a class, clean streams gain 4.5 points, streams with noise none.
_SHARPER = 1.5
_ONE_CLASS = 100.0  # there the logit is standardised: any scale gives the same decisions

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class ClassFeatures(NamedTuple):
    """Classes that were made from example photos."""

    features: NDArray[np.float32]  # (C, D) unit norm: what text features are of names
    scale: MeantScale  # of their logits
    right: int  # photos nearest to their own class when they were left out
    judged: int  # photos that were left out: those of classes with two or more


def class_features(features: ArrayLike, labels: ArrayLike) -> ClassFeatures:
    """Classes from example features (N, D) with their classes' numbers (N,), 0 to C - 1.

    A photo that occurs twice in its class counts once, and the order of photos does not matter.

    Raises:
        SettingsError: features or labels are invalid, a class has no photo, or none of several
            classes has two different ones.
    """
    rows = checked_matrix("features", features)
    classes = _checked_labels(labels, len(rows))
    check(bool(rows.any(axis=1).all()), "features have a row of zeros.")
    x, y = _each_once(unit(rows.astype(np.float64)), classes)
    sums = np.zeros((y.max() + 1, x.shape[1]))
    np.add.at(sums, y, x)
    check(bool((np.linalg.norm(sums, axis=1) > 0).all()), "the photos of a class cancel out.")
    logits, labels_left = _left_out(x, y, sums)
    right = int((logits.argmax(1) == labels_left).sum())
    scale = _ONE_CLASS if len(sums) == 1 else _scale(logits, labels_left)
    return ClassFeatures(unit(sums).astype(np.float32), MeantScale(scale), right, len(labels_left))


def _checked_labels(labels: ArrayLike, count: int) -> Labels:
    values = np.asarray(labels)
    is_one_each = values.shape == (count,) and values.dtype.kind in "iu"
    check(is_one_each, f"labels must be whole numbers, one for each of {count:,} features.")
    check(count > 0, "there are no example photos: give one or more for each class.")
    for label in set(range(int(values.max()) + 1)) ^ set(values.tolist()):
        check(label >= 0, f"a label is {label}, must be 0 or more.")
        raise SettingsError(f"class {label} has no example photo.")
    return values.astype(np.int64)


def _each_once(x: Floats, y: Labels) -> tuple[Floats, Labels]:
    """Different photos of each class, sorted, so that their order does not change sums."""
    rows = np.unique(np.column_stack([y, x]), axis=0)
    return rows[:, 1:], rows[:, 0].astype(np.int64)


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


def _scale(cosines: Floats, own: Labels) -> float:
    """The scale with the largest likelihood of the photos' own classes (M,), and somewhat above.

    If all of a few photos get their own class, no scale would be too large. So each is assumed to
    be of another class with the probability 1 / (M + 2), as in Platt's scaling. The likelihood is
    concave in the scale, and its slope is the wanted mean cosine minus the expected one.
    """
    count, classes = cosines.shape
    if count == 0:
        raise SettingsError("no class has two different photos: give 2 to 8 of each.")
    wrong = 1 / (count + 2)
    at_own = cosines[np.arange(count), own]
    at_others = (cosines.sum(1) - at_own) / (classes - 1)
    wanted = float(((1 - wrong) * at_own + wrong * at_others).mean())
    low, high = _SCALES
    below_best = cosines - cosines.max(1, keepdims=True)
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        likely = np.exp(middle * below_best)
        expected = float((np.vecdot(likely, cosines) / likely.sum(1)).mean())
        low, high = (middle, high) if expected < wanted else (low, middle)
    return float(f"{_SHARPER * low:.3g}")  # a state goes on where the last digits are others
