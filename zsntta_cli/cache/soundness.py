"""Whether the content of a feature file that is whole can be used."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.names import DATASET, NOISE, WORDS
from zsntta_cli.settings.options import LARGEST_SCALE, is_bias, is_scale

if TYPE_CHECKING:
    from zsntta_cli.cache.store import Features

UNIT_TOLERANCE = 1e-2  # unit norms in half precision differ by less, raw CLIP norms by far more
TEXT_TOLERANCE = 1e-3
_SAMPLED = 256  # rows whose norms are checked whenever a file is read
_BLOCK = 8192  # rows in double precision at a time


def faults(features: "Features", every_row: bool = False) -> list[str]:
    """List what is wrong with the content of a file that is whole; nothing if it is sound.

    Norms are computed of some rows only, unless `every_row`: features that are not finite are
    shown by their scores, which are computed before any result.
    """
    of_words = faults_of_words(features.kind, features.identity, features.source)
    return [*of_words, *_faults_of_rows(features, every_row)]


def faults_of_words(
    kind: str, identity: Mapping[str, Any], source: Mapping[str, Any]
) -> Iterator[str]:
    """Give what is wrong with the description of a file, beside its arrays."""
    scale, bias = identity.get("logit_scale"), identity.get("logit_bias")
    if kind not in (DATASET, NOISE, WORDS):
        yield f"its kind is '{kind}'"
    if not is_scale(scale):
        yield f"its logit scale is {scale}, must be above 0 and at most {LARGEST_SCALE:g}"
    if bias is not None and not is_bias(bias):
        yield f"its logit bias is {bias}, must be a number"
    for key in ("model", "pretrained", "precision", "weights_sha256"):
        if not isinstance(identity.get(key), str | None):
            yield f"its encoder's {key} is no text"
    for key in ("images", "limit"):
        value = source.get(key)
        if not isinstance(value, int | None) or isinstance(value, bool) or (value or 0) < 0:
            yield f"its source's {key} is no whole number"


def _faults_of_rows(features: "Features", every_row: bool) -> Iterator[str]:
    rows, lowest = features.image_features, features.labels.min(initial=0)
    if lowest < -1:
        yield f"has the label {lowest}, must be -1 (none) or more"
    if not len(rows) and features.kind != WORDS:
        yield "holds no features"
    suspects = np.flatnonzero((rows[:, :1] == 0).all(axis=1))  # few, unless whole rows are zero
    if len(zero := suspects[~rows[suspects].any(axis=1)]):
        yield f"{len(zero):,} features are zero (the first in row {zero[0]})"
    norms = row_norms(rows if every_row else rows[:: 1 + len(rows) // _SAMPLED])
    if every_row and (bad := ~np.isfinite(norms)).any():
        yield f"{bad.sum():,} features are not finite (the first in row {bad.argmax()})"
    if features.normalized and not (abs(norms - 1) <= UNIT_TOLERANCE).all():
        yield "is marked as normalised, but norms are not 1"
    for text in features.texts.values():
        if text.logit_scale is not None and not is_scale(text.logit_scale):
            yield f"the logit scale of '{text.template}' is {text.logit_scale}, must be above 0"
        if not (abs(row_norms(text.features) - 1) < TEXT_TOLERANCE).all():
            yield f"text features of '{text.template}' have norms other than 1"
    if features.generic is not None:
        norm = float(row_norms(features.generic[None])[0])
        if not 0 < norm <= 1 + TEXT_TOLERANCE:  # the mean of unit vectors
            yield f"the generic text's norm is {norm:g}, must be above 0 and at most 1"


def row_norms(features: NDArray[np.floating]) -> NDArray[np.float64]:
    """The norms (N,) of features (N, D); a norm is not finite if a value is not."""
    norms = np.empty(len(features))
    with np.errstate(all="ignore"):  # values that are not numbers would raise warnings
        for start in range(0, len(features), _BLOCK):
            rows = slice(start, start + _BLOCK)
            norms[rows] = np.linalg.norm(features[rows].astype(np.float64), axis=1)
    return norms
