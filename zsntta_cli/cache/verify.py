"""Whether feature files are whole and all that they hold is as it should be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, NOISE, WORDS, FeatureSet, Header
from zsntta_cli.errors import StoreError

UNIT_TOLERANCE = 1e-2  # unit norms in half precision are off by less, raw CLIP norms by far more
TEXT_TOLERANCE = 1e-3
_CHUNK = 8192  # rows in double precision at a time


@dataclass(frozen=True)
class Details:
    """Everything of one file."""

    header: Header
    features: FeatureSet
    norms: NDArray[np.float64]  # (N,)
    label_counts: dict[int, int]  # -1 = none


def read_details(path: Path) -> Details:
    """Everything of one file: StoreError where it is broken."""
    features = hdf5.read_features(path)
    values, counts = np.unique(features.labels, return_counts=True)
    label_counts = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return Details(
        hdf5.read_header(path), features, row_norms(features.image_features), label_counts
    )


def row_norms(features: NDArray[np.floating]) -> NDArray[np.float64]:
    """Norms (N,) of features (N, D); not finite where a value is not."""
    norms = np.empty(len(features))
    with np.errstate(all="ignore"):  # of values that are not numbers
        for start in range(0, len(features), _CHUNK):
            rows = slice(start, start + _CHUNK)
            norms[rows] = np.linalg.norm(features[rows].astype(np.float64), axis=1)
    return norms


def problems(path: Path) -> list[str]:
    """What is wrong with a feature file, read whole; nothing if it is as it should be."""
    try:
        features, ids = hdf5.read_features(path), hdf5.read_sample_ids(path)
        header = hdf5.read_header(path)
    except StoreError as error:
        return [str(error)]
    return [
        *_of_identity(features, header),
        *_of_features(features),
        *_of_texts(features),
        *_of_ids(features, ids),
    ]


def _of_identity(features: FeatureSet, header: Header) -> Iterator[str]:
    if header.kind not in (DATASET, NOISE, WORDS):
        yield f"its kind is '{header.kind}'"
    if features.name != features.path.stem:
        yield f"holds the features of '{features.name}': rename it to {features.name}.h5"
    scale = header.identity.get("logit_scale")
    if not isinstance(scale, float | int) or not 0 < scale < np.inf:
        yield f"its logit scale is {scale}, must be above 0"


def _of_features(features: FeatureSet) -> Iterator[str]:
    norms = row_norms(features.image_features)
    if not len(norms) and features.kind != WORDS:
        yield "holds no features"
    for what, bad in (("not finite", ~np.isfinite(norms)), ("zero", norms == 0)):
        if bad.any():
            yield f"{bad.sum():,} features are {what} (the first in row {bad.argmax()})"
    if features.normalized and (abs(norms - 1) > UNIT_TOLERANCE).any():
        yield "is marked as normalised, but norms are not 1"
    if features.labels.min(initial=0) < -1:
        yield f"has the label {features.labels.min()}, must be -1 (none) or more"


def _of_texts(features: FeatureSet) -> Iterator[str]:
    for template, text in features.text_features.items():
        norms = row_norms(text)
        if not (abs(norms - 1) < TEXT_TOLERANCE).all():  # also where a norm is not a number
            yield f"text features of '{template}' have norms other than 1"


def _of_ids(features: FeatureSet, ids: Sequence[str]) -> Iterator[str]:
    if len(ids) != len(features):
        yield f"has {len(ids):,} sample ids for {len(features):,} features"
    if len(set(ids)) < len(ids):
        yield f"{len(ids) - len(set(ids)):,} sample ids are there twice"
