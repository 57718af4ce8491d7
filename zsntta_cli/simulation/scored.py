"""The zero-shot scores of sets in parts: computed in one pass over the rows, and cached.

`NAME.scores/<16 hex>.h5` has 16 bytes per image: the class, u, the entropy of the classes (nats)
and the largest logit, in the precision of the computation, which is single. The name of the file
depends on the features, text features and logit scale.
"""

import contextlib
import hashlib
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import FeatureSet
from zsntta_cli.cache.folder import scores_folder
from zsntta_cli.cache.mapped import MappedRows
from zsntta_cli.cache.soundness import not_finite
from zsntta_cli.errors import StoreError
from zsntta_cli.methods.scores import ZeroShot, zero_shot_columns

_RULE = 1  # of what is kept: another number makes all anew
_BLOCK = 2**14  # rows at a time
_COLUMNS: dict[str, type[np.number[Any]]] = {
    "class_index": np.int32,
    "noise_score": np.float32,
    "entropy": np.float32,
    "largest_logit": np.float32,
}


def kept_zero_shot(features: FeatureSet, text: NDArray[np.float32], scale: float) -> ZeroShot:
    """The scores of a set in parts, (N,) each, on the disk; computed now if they are missing.

    Computing them reads all features once, and checks their digests.

    Raises:
        StoreError: features are not finite, or do not match their digest.
    """
    key = _key(features, text, scale)
    path = scores_folder(features.path) / f"{key[:16]}.h5"
    kept = _read(path, key, len(features))
    if kept is None:
        blocks = _score(features, text, scale)
        hdf5.write_columns(path, len(features), _COLUMNS, blocks, lambda: {"key": key})
        kept = _read(path, key, len(features))
        assert kept is not None, "what was written a moment ago"
    return ZeroShot(kept["class_index"], kept["noise_score"], kept["largest_logit"])


def _key(features: FeatureSet, text: NDArray[np.float32], scale: float) -> str:
    """The key under which scores are found again."""
    of_text = hashlib.sha256(np.ascontiguousarray(text).data).hexdigest()
    what = f"{_RULE} {features.digest} {of_text} {type(scale).__name__} {float(scale)!r}"
    return hashlib.sha256(what.encode()).hexdigest()


def _read(path: Path, key: str, count: int) -> dict[str, NDArray[Any]] | None:
    """Kept scores; None if there are none, or if the file is broken or has another key."""
    if not path.exists():
        return None
    with contextlib.suppress(StoreError):
        header, columns = hdf5.map_columns(path)
        dtypes = {name: column.dtype for name, column in columns.items()}
        fits = header.get("key") == key and dtypes == _COLUMNS
        if fits and all(len(column) == count for column in columns.values()):
            return columns
    return None


def _score(
    features: FeatureSet, text: NDArray[np.float32], scale: float
) -> Iterator[dict[str, NDArray[Any]]]:
    """Score blocks of rows on all cores, while this thread computes their digests."""
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as workers, threadpool_limits(1, "blas"):
        at_work: deque[Future[dict[str, NDArray[Any]]]] = deque()
        for rows in _checked_blocks(features):
            at_work.append(workers.submit(_columns, rows, text, scale))
            if len(at_work) > 2 * cores:
                yield _finite(features, at_work.popleft().result())
        for columns in at_work:
            yield _finite(features, columns.result())


def _columns(
    rows: NDArray[np.floating], text: NDArray[np.float32], scale: float
) -> dict[str, NDArray[Any]]:
    with np.errstate(all="ignore"):  # of features that are not finite, which are refused below
        return zero_shot_columns(rows, text, scale)


def _finite(features: FeatureSet, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    if not np.isfinite(columns["noise_score"]).all():
        raise StoreError(
            f"{features.path} cannot be used: {not_finite(features)}.", remedy="make-again"
        )
    return columns


def _read_in_order(path: Path, rows: NDArray[np.floating]) -> Iterator[NDArray[np.floating]]:
    """The rows of a memory map in blocks, read in order, so that the system reads ahead."""
    if not len(rows):
        return
    assert isinstance(rows, np.memmap)
    with path.open("rb", buffering=0) as file:
        file.seek(rows.offset)
        for start in range(0, len(rows), _BLOCK):
            count = min(_BLOCK, len(rows) - start)
            yield np.fromfile(file, rows.dtype, count * rows.shape[1]).reshape(count, -1)


def _checked_blocks(features: FeatureSet) -> Iterator[NDArray[np.floating]]:
    """The rows in blocks, none of which spans two parts.

    Raises:
        StoreError: after its last block, the rows of a part do not match its digest.
    """
    assert isinstance(features.image_features, MappedRows)
    first = 0
    for part, rows in zip(features.parts, features.image_features.files(), strict=True):
        digest = hashlib.sha256()
        for block in _read_in_order(part.path, rows):
            yield block
            digest.update(block.data)
        digest.update(features.labels[first : first + part.images].data)
        if digest.hexdigest() != part.digest:
            raise StoreError(
                f"{part.path} is broken: its content does not match its digest", remedy="join-again"
            )
        first += part.images
