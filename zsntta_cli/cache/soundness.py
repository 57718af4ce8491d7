"""Checks of a feature file's content that are cheap enough for each reading of a file.

`cache verify` makes the same checks, and those that take longer (verify.py). Whether features are
finite is not checked here: their scores, which are computed before any result, show it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import DATASET, NOISE, WORDS, FeatureSet

UNIT_TOLERANCE = 1e-2  # unit norms in half precision differ by less, raw CLIP norms by far more
TEXT_TOLERANCE = 1e-3
LARGEST_SCALE = 1e6  # CLIP's is 100; logits must be numbers in single precision
NOT_NORMALIZED = "is marked as normalised, but norms are not 1"
_BLOCK = 2**16  # rows at a time
_SAMPLED = 256  # rows of normalised features whose norms are checked
_STRINGS, _COUNTS = ("model", "pretrained", "precision", "weights_sha256"), ("images", "limit")


def faults(features: FeatureSet) -> Iterator[str]:
    """Give what is wrong with the content of a file; nothing if it is sound."""
    yield from faults_of_words(features.kind, features.identity, features.source)
    yield from _of_rows(features)
    for template, text in features.text_features.items():
        yield from _of_texts(template, text)


def _of_texts(template: str, text: NDArray[np.float32]) -> Iterator[str]:
    """Give what is wrong with the text features (C, D) of a template."""
    norms = np.sqrt(np.einsum("ij,ij->i", text, text))
    if not (abs(norms - 1) < TEXT_TOLERANCE).all():  # also where a norm is not a number
        yield f"text features of '{template}' have norms other than 1"


def faults_of_words(
    kind: str, identity: Mapping[str, Any], source: Mapping[str, Any]
) -> Iterator[str]:
    """Give what is wrong with the description of a file, beside its arrays."""
    if kind not in (DATASET, NOISE, WORDS):
        yield f"its kind is '{kind}'"
    scale = identity.get("logit_scale")
    if not is_scale(scale):
        yield f"its logit scale is {scale}, must be above 0 and at most {LARGEST_SCALE:g}"
    bias = identity.get("logit_bias")
    if bias is not None and not is_bias(bias):
        yield f"its logit bias is {bias}, must be a number"
    for key in _STRINGS:
        if not isinstance(identity.get(key), str | None):
            yield f"its encoder's {key} is no text"
    for key in _COUNTS:
        value = source.get(key)
        if not isinstance(value, int | None) or isinstance(value, bool) or (value or 0) < 0:
            yield f"its source's {key} is no whole number"


def is_scale(value: Any) -> bool:
    """Whether a value can be an encoder's logit scale, exponentiated."""
    number = isinstance(value, float | int) and not isinstance(value, bool)
    return number and 0 < value <= LARGEST_SCALE


def is_bias(value: Any) -> bool:
    """Whether a value can be a sigmoid model's logit bias."""
    number = isinstance(value, float | int) and not isinstance(value, bool)
    return number and abs(value) <= LARGEST_SCALE


def _of_rows(features: FeatureSet) -> Iterator[str]:
    rows, lowest = features.image_features, features.labels.min(initial=0)
    if lowest < -1:
        yield f"has the label {lowest}, must be -1 (none) or more"
    if not len(rows) and features.kind != WORDS:
        yield "holds no features"
    if rows.size == 0:
        return
    suspects = np.flatnonzero(rows[:, 0] == 0)  # few rows, unless whole features are zero
    zero = suspects[~rows[suspects].any(axis=1)]
    if len(zero):
        yield f"{len(zero):,} features are zero (the first in row {zero[0]})"
    if features.normalized and not _are_unit(rows[:: -(-len(rows) // _SAMPLED)]):
        yield NOT_NORMALIZED


def _are_unit(rows: NDArray[np.floating]) -> bool:
    norms = np.linalg.norm(rows.astype(np.float32), axis=1)
    return bool((abs(norms - 1) <= UNIT_TOLERANCE).all())


def not_finite(features: FeatureSet) -> str:
    """Say which features are not finite, once a score that is not finite has shown it."""
    rows = features.image_features
    blocks = (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))
    bad = ~np.concatenate([np.isfinite(block).all(axis=1) for block in blocks])
    return f"{bad.sum():,} features are not finite (the first in row {bad.argmax()})"
