"""Whose features: what of two encoders' identities must agree for them to count as one."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# For features to meet in one stream.
SAME_ENCODER = (
    "model", "weights_sha256", "quick_gelu", "precision", "image_size", "preprocessing",
    "logit_scale", "logit_bias",
)  # fmt: skip


class Difference(NamedTuple):
    """The first thing that two identities differ in."""

    key: str
    one: Any
    other: Any


def difference(
    one: Mapping[str, Any], other: Mapping[str, Any], keys: Iterable[str] = SAME_ENCODER
) -> Difference | None:
    """The first of some keys whose values differ; None where all agree."""
    for key in keys:
        if one.get(key) != other.get(key):
            return Difference(key, one.get(key), other.get(key))
    return None
