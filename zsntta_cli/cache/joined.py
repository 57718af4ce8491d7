"""Sets in turn as one set: their rows below each other, with the class names of the first set."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import FeatureSet, Header, difference
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import read_header
from zsntta_cli.datasets.names import in_turn
from zsntta_cli.errors import StoreError


def joined(parts: Sequence[FeatureSet], name: str) -> FeatureSet:
    """Join feature files into one set.

    Raises:
        StoreError: the files are of different encoders.
    """
    first = parts[0]
    for other in parts[1:]:
        if difference(first.identity, other.identity) or first.normalized != other.normalized:
            raise StoreError(
                f"{first.path} and {other.path} are of different encoders, or one alone is "
                f"normalised: they cannot come in turn."
            )
    return dataclasses.replace(
        first,
        name=name,
        digest=_digest([part.digest for part in parts]),
        image_features=np.concatenate([part.image_features for part in parts]),
        labels=np.concatenate([_labels(first, part) for part in parts]),
        parts=(),  # their rows are in memory now
    )


def _labels(first: FeatureSet, part: FeatureSet) -> NDArray[np.int32]:
    """The labels (N,) of a part as classes of the first set; -1 if it has no such class."""
    if part.class_names == first.class_names:
        return part.labels
    places = {class_name: i for i, class_name in enumerate(first.class_names)}
    classes = np.array([*(places.get(c, -1) for c in part.class_names), -1], np.int32)
    return classes[part.labels]


def check_classes(parts: Sequence[FeatureSet]) -> None:
    """Refuse ID sets in turn if one of them has a class that the first one lacks.

    Raises:
        StoreError: a set has such a class; the message names both.
    """
    first = parts[0]
    for part in parts[1:]:
        if foreign := sorted({*part.class_names} - {*first.class_names}):
            raise StoreError(
                f"'{part.name}' cannot come in turn with '{first.name}' as an ID set: it has "
                f"classes that '{first.name}' has not, as '{foreign[0]}'. The set with all classes "
                f"comes first."
            )


def _digest(digests: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


def set_header(root: Path, encoder_name: str, name: str) -> Header:
    """Read the header of a set's feature file, or one header for sets in turn."""
    headers = [read_header(feature_path(root, encoder_name, part)) for part in in_turn(name)]
    if len(headers) == 1:
        return headers[0]
    images = sum(header.images for header in headers)
    digest = _digest([header.digest for header in headers])
    return dataclasses.replace(headers[0], images=images, digest=digest)
