"""What a feature file holds, in memory; how it is written stands in hdf5.py."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.names import DATASET, NOISE, WORDS

__all__ = ["DATASET", "NOISE", "WORDS", "FeatureSet", "Header", "Text"]


@dataclass(frozen=True)
class FeatureSet:
    """One feature file in memory, but for its sample ids."""

    path: Path
    kind: str
    name: str
    identity: dict[str, Any]  # of the encoder
    source: dict[str, Any]
    digest: str  # sha256 over features and labels
    image_features: NDArray[np.floating]  # (N, D) float16 or float32, raw unless `normalized`
    labels: NDArray[np.int32]  # (N,), -1 = none
    class_names: tuple[str, ...]
    text_features: dict[str, NDArray[np.float32]]  # by template: (C, D) unit norm
    normalized: bool = False

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Text:
    """Class text features of one prompt template."""

    template: str
    features: NDArray[np.float32]  # (C, D) unit norm


@dataclass(frozen=True)
class Header:
    """What a feature file says of itself, without its arrays."""

    kind: str
    images: int
    dim: int
    dtype: str
    classes: int
    templates: tuple[str, ...]
    normalized: bool
    created: str
    identity: dict[str, Any]  # of the encoder
    digest: str  # sha256 over features and labels
    text_digests: tuple[str, ...]  # sha256 over text features, by template
