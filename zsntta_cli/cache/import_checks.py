"""Checks of features made elsewhere: each check gives a checked array, or refuses in one line."""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.description import Description
from zsntta_cli.cache.features import FeatureSet, Text
from zsntta_cli.cache.verify import row_norms
from zsntta_cli.errors import StoreError, short

_CHUNK = 8192  # rows at a time
_UNIT = 1e-4  # text features whose norms are further from 1 are normalised
_LARGEST_LABEL = 2**31 - 1  # labels are stored as int32


def _refuse(ok: bool, message: str) -> None:
    if not ok:
        raise StoreError(message)


@dataclass(frozen=True)
class ImportedRows:
    """Image features (N, D) in one or more parts, which are memory-mapped if files allow it."""

    parts: list[NDArray[Any]]
    where: Path

    def __post_init__(self) -> None:
        for part in self.parts:
            check_matrix(part, f"{self.where}: the features")
            _refuse(
                part.shape[1] == self.dim,
                f"{self.where}: its parts have {self.dim} and {part.shape[1]} dims, must be of one "
                f"encoder.",
            )

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def dim(self) -> int:
        """The features' dimensions, D."""
        return int(self.parts[0].shape[1])

    def blocks(self) -> Iterator[NDArray[np.floating]]:
        """Give all rows in order, as float16 if all parts are float16, and as float32 otherwise."""
        half = all(part.dtype.itemsize == 2 for part in self.parts)
        dtype: type[np.floating] = np.float16 if half else np.float32
        for part in self.parts:
            for start in range(0, len(part), _CHUNK):
                with np.errstate(all="ignore"):  # values that are not finite are refused later
                    block: NDArray[np.floating] = part[start : start + _CHUNK].astype(dtype)
                yield block

    def norms(self) -> NDArray[np.float64]:
        """The norms (N,): StoreError for a feature that is zero or not finite."""
        norms = np.concatenate([row_norms(block) for block in self.blocks()])
        _check_norms(norms, f"{self.where}: the features")
        return norms


def check_matrix(array: NDArray[Any], what: str) -> None:
    """Refuse an array that is not (N, D) of floating-point numbers."""
    _refuse(
        array.ndim == 2 and array.size > 0,
        f"{what} have the shape {array.shape}, must be (N, D): a row for each, and not empty.",
    )
    _refuse(
        array.dtype.kind == "f" and array.dtype.itemsize in (2, 4, 8),
        f"{what} are {array.dtype}, must be float16, float32 or float64: save them as float32.",
    )


@dataclass(frozen=True)
class Checked:
    """Features made elsewhere that have passed all checks."""

    rows: ImportedRows
    normalized: bool
    labels: NDArray[np.int32]  # (N,), -1 = none
    class_names: tuple[str, ...]
    texts: tuple[Text, ...]  # a file that is no export of ours has none or one
    sample_ids: tuple[str, ...]
    notes: list[str]  # what the checks noticed or changed
    description: Description | None = None  # of an exported file or a feature file

    def is_in(self, old: FeatureSet) -> bool:
        """Whether a feature file holds these features, labels and class names."""
        rows, start = self.rows, 0
        if (
            old.image_features.shape != (len(rows), rows.dim)
            or (old.class_names, old.normalized) != (self.class_names, self.normalized)
            or not np.array_equal(old.labels, self.labels)
        ):
            return False
        for block in rows.blocks():
            if not np.array_equal(old.image_features[start : start + len(block)], block):
                return False
            start += len(block)
        return True


def _check_norms(norms: NDArray[np.float64], what: str) -> None:
    for fault, bad in (("not finite", ~np.isfinite(norms)), ("zero", norms == 0)):
        _refuse(
            not bad.any(),
            f"{what} of row {bad.argmax()} are {fault} ({bad.sum():,} of {len(norms):,} rows), "
            f"must be finite and not zero: encode these again or leave them out.",
        )


def no_labels(count: int) -> NDArray[np.int32]:
    """The labels (N,) of features that have none: -1."""
    return np.full(count, -1, np.int32)


def _flattened(array: NDArray[Any], count: int, where: Path) -> tuple[NDArray[Any], str]:
    """Labels (N,) of a column (N, 1) or of one-hot rows (N, C), with a note on that."""
    if array.ndim != 2 or len(array) != count or array.dtype.kind not in "fiub":
        return array, ""
    if array.shape[1] == 1:
        return array[:, 0], f"{where.name}: the labels are a column (N, 1), taken as (N,)"
    if np.isin(array, (0, 1)).all() and (array.sum(axis=1) == 1).all():
        return array.argmax(axis=1), f"{where.name}: the labels are one-hot, taken as numbers"
    return array, ""


def check_labels(
    array: NDArray[Any], count: int, classes: int, where: Path, notes: list[str] | None = None
) -> NDArray[np.int32]:
    """Check labels (N,) of `count` features; `classes` is 0 if no class names are known.

    A column and one-hot rows are taken, and `notes` says so.
    """
    if array.dtype.kind == "U":  # lines of a text file
        array = _integers(array, where)
    array, note = _flattened(array, count, where)
    if note and notes is not None:
        notes.append(note)
    _refuse(
        array.shape == (count,),
        f"{where}: the labels' shape is {array.shape}, must be ({count},): one for each feature.",
    )
    _refuse(
        array.dtype.kind in "iu",
        f"{where}: the labels are {array.dtype}, must be integers: save them as int32.",
    )
    low, high = int(array.min()), int(array.max())
    _refuse(low >= -1, f"{where}: a label is {low}, must be 0 or more, or -1 for none.")
    _refuse(
        not (classes and low == 1 and high == classes),
        f"{where}: the labels run from 1 to {high} for {classes} class names: they seem to be "
        f"counted from 1, must be from 0: subtract 1.",
    )
    largest = classes - 1 if classes else _LARGEST_LABEL
    _refuse(
        high <= largest,
        f"{where}: a label is {high}, must be at most {largest}"
        + (f", there are {classes} class names: give one for each class." if classes else "."),
    )
    return array.astype(np.int32)


def numbers_of_names(
    labels: NDArray[Any], label_names: Sequence[str], names: Sequence[str], where: Path
) -> NDArray[np.int64]:
    """Turn labels (N,) that count `label_names` into labels that count `names`; -1 stays."""
    numbers, counts = {name: i for i, name in enumerate(names)}, Counter(names)
    for name in label_names:
        _refuse(
            counts[name] == 1,
            f"{where}: the label '{short(name)}' is {counts[name]} of the class names, must be "
            f"one: give labels as numbers.",
        )
    of_names = np.array([numbers[name] for name in label_names], np.int64)
    return np.where(labels < 0, -1, of_names[labels])


def _integers(lines: NDArray[Any], where: Path) -> NDArray[np.int64]:
    numbers = []
    for i, line in enumerate(lines.ravel().tolist(), 1):
        _refuse(
            line.removeprefix("-").isdecimal() and len(line) < 12,
            f"{where}: line {i} is '{line[:40]}', must be an integer: one label a line.",
        )
        numbers.append(int(line))
    return np.array(numbers, np.int64)


def check_names(array: NDArray[Any], where: Path) -> tuple[str, ...]:
    """Check class names (C,) of an array of texts."""
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    _refuse(
        array.ndim == 1 and array.size > 0 and array.dtype.kind == "U",
        f"{where}: the class names are {array.dtype} of shape {array.shape}, must be a list of "
        f"texts, a name for each class.",
    )
    names = tuple(map(str, array.tolist()))
    for i, name in enumerate(names):
        _refuse(
            bool(name.strip()) and all(unicodedata.category(c) not in ("Cc", "Cs") for c in name),
            f"{where}: class name {i} is {ascii(name)[:60]}, must be one line of text.",
        )
    return names


def check_text(
    array: NDArray[Any], dim: int, names: int, where: Path
) -> tuple[NDArray[np.float32], str]:
    """Check class text features (C, D), and normalise them if need be, with a note on that."""
    check_matrix(array, f"{where}: the text features")
    turned = ""
    if array.shape[0] == dim != array.shape[1] and names in (0, array.shape[1]):
        array, turned = array.T, "the text features are (D, C), taken transposed; "
    _refuse(
        array.shape[1] == dim,
        f"{where}: the text features have {array.shape[1]} dims, the image features {dim}: must be "
        f"of one encoder.",
    )
    _refuse(
        names in (0, len(array)),
        f"{where}: there are {len(array)} text features for {names} class names, must be one for "
        f"each: take the list that they were made from.",
    )
    norms = row_norms(array)
    _check_norms(norms, f"{where}: the text features")
    if (abs(norms - 1) <= _UNIT).all():
        return np.ascontiguousarray(array, np.float32), turned.removesuffix("; ")
    note = (
        f"{turned}the text features' norms are {norms.min():.4g} to {norms.max():.4g}: brought to 1"
    )
    return (array / norms[:, None]).astype(np.float32), note
