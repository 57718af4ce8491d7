"""What a feature file holds, in memory; how it is written stands in hdf5.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.halves import float32_of
from zsntta_cli.datasets.names import DATASET, NOISE, WORDS

__all__ = ["DATASET", "NOISE", "WORDS", "FeatureSet", "Header", "Rows", "Text"]


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


class Rows:
    """Image features of several files, one below the other: float32 rows, made when asked for.

    As an array it can be indexed by a slice or by row numbers, and has a shape and a length.
    """

    def __init__(
        self, parts: Sequence[NDArray[np.floating]], factors: Sequence[float] = ()
    ) -> None:
        """`parts` (N, D) each; their rows are multiplied by the part's factor."""
        self._parts, self._factors = parts, np.array(factors or [1] * len(parts), np.float32)
        self._dtype = np.result_type(*(part.dtype for part in parts))
        sizes = [len(part) for part in parts]
        self._part = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)
        self._row = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
        self.shape = len(self._row), parts[0].shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> NDArray[np.float32]:
        part_of, row = self._part[rows], self._row[rows]
        taken = np.empty((len(row), self.shape[1]), self._dtype)
        for i, part in enumerate(self._parts):
            here = np.flatnonzero(part_of == i)
            taken[here] = part.take(row[here], axis=0)
        made = float32_of(taken)
        return made if (self._factors == 1).all() else made * self._factors[part_of, None]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("rows are made when asked for: there is no array without a copy")
        return self[:].astype(dtype or np.float32, copy=False)


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
