"""Full checks of feature files: whether they are whole, and whether their content is sound."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import FeatureSet, Header
from zsntta_cli.cache.soundness import NOT_NORMALIZED, UNIT_TOLERANCE, not_finite
from zsntta_cli.errors import StoreError

_CHUNK = 8192  # rows in double precision at a time


@dataclass(frozen=True)
class Details:
    """The header and the content of one file, with norms and label counts."""

    header: Header
    features: FeatureSet
    norms: NDArray[np.float64]  # (N,)
    label_counts: dict[int, int]  # -1 = none


def read_details(path: Path) -> Details:
    """Read the header and the content of one file: StoreError if it is broken."""
    features = hdf5.read_features(path)
    values, counts = np.unique(features.labels, return_counts=True)
    label_counts = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return Details(
        hdf5.read_header(path), features, row_norms(features.image_features), label_counts
    )


def row_norms(features: NDArray[np.floating]) -> NDArray[np.float64]:
    """The norms (N,) of features (N, D); a norm is not finite if a value is not."""
    norms = np.empty(len(features))
    with np.errstate(all="ignore"):  # values that are not numbers would raise warnings
        for start in range(0, len(features), _CHUNK):
            rows = slice(start, start + _CHUNK)
            norms[rows] = np.linalg.norm(features[rows].astype(np.float64), axis=1)
    return norms


def problems(path: Path) -> list[str]:
    """Read a feature file whole, and list what is wrong with it; nothing if it is sound."""
    try:
        features, ids = hdf5.read_features(path), hdf5.read_sample_ids(path)
        hdf5.read_header(path)
        return [*_of_features(features), *_of_ids(ids)]
    except StoreError as error:
        return [str(error)]


def _of_features(features: FeatureSet) -> Iterator[str]:
    """Give the faults whose checks take too long for each reading of a file."""
    if features.name != features.path.stem:
        yield f"holds the features of '{features.name}': rename it to {features.name}.h5"
    norms = row_norms(features.image_features)
    if not np.isfinite(norms).all():
        yield not_finite(features)
    if features.normalized and (abs(norms - 1) > UNIT_TOLERANCE).any():
        yield NOT_NORMALIZED


def _of_ids(ids: Sequence[str]) -> Iterator[str]:
    if len(set(ids)) < len(ids):
        yield f"{len(ids) - len(set(ids)):,} sample ids are there twice"
