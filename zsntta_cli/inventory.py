"""What lies in a features folder: headers of files, unfinished work, and whether all is whole."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import store
from zsntta_cli.errors import StoreError

UNIT_TOLERANCE = 1e-2  # unit norms in half precision are off by less, raw CLIP norms by far more
TEXT_TOLERANCE = 1e-3
_CHUNK = 8192  # rows in double precision at a time


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
    encoder: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One feature file or one unfinished extraction."""

    path: Path
    size: int  # bytes
    header: Header | None = None
    problem: str = ""  # why there is no header

    @property
    def encoder(self) -> str:
        """The folder name of the encoder."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """The set's name."""
        return self.path.stem.removeprefix(".")


@dataclass(frozen=True)
class Details:
    """Everything of one file."""

    header: Header
    features: store.FeatureSet
    norms: NDArray[np.float64]  # (N,)
    label_counts: dict[int, int]  # -1 = none


def entries(root: Path, encoder: str | None = None) -> list[Entry]:
    """All feature files and unfinished extractions, of one encoder's folder or of all."""
    found = [_entry(path) for path in _files(root, encoder)]
    parts = [path for path in root.glob("*/.*.parts") if encoder in (None, path.parent.name)]
    found += [_unfinished(path) for path in parts]
    return sorted(found, key=lambda entry: (entry.encoder, entry.name, entry.problem))


def find(root: Path, names: Sequence[str] = (), encoder: str | None = None) -> list[Path]:
    """The feature files of some sets, or of all where none is named.

    Raises:
        StoreError: a set has no feature file.
    """
    files = _files(root, encoder)
    for name in names:
        if name not in {path.stem for path in files}:
            known = ", ".join(dict.fromkeys(path.stem for path in files)) or "nothing"
            where = root / encoder if encoder else root
            raise StoreError(
                f"no features of '{name}' in {where}/ (there: {known}): type zsntta extract "
                f"--dataset {name}, or zsntta cache import {name} --features FILE."
            )
    return [path for path in files if not names or path.stem in names]


def read_header(path: Path) -> Header:
    """What a feature file says of itself: StoreError where it is broken."""
    with store.opened(path) as file:
        attrs, rows = store.text_attrs(file), file["image_features"]
        images, dim = rows.shape
        groups = file["text"].values() if "text" in file else ()
        return Header(
            attrs["kind"], images, dim, str(rows.dtype),
            len(file["class_names"]) if "class_names" in file else 0,
            tuple(store.text_attrs(group)["template"] for group in groups),
            bool(file.attrs["normalized"]), attrs["created"], dict(json.loads(attrs["encoder"])),
        )  # fmt: skip


def read_details(path: Path) -> Details:
    """Everything of one file: StoreError where it is broken."""
    features = store.read_features(path)
    values, counts = np.unique(features.labels, return_counts=True)
    label_counts = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return Details(read_header(path), features, row_norms(features.image_features), label_counts)


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
        features, ids = store.read_features(path), store.read_sample_ids(path)
        header = read_header(path)
    except StoreError as error:
        return [str(error)]
    return [
        *_of_identity(features, header),
        *_of_features(features),
        *_of_texts(features),
        *_of_ids(features, ids),
    ]


def _of_identity(features: store.FeatureSet, header: Header) -> Iterator[str]:
    if header.kind not in (store.DATASET, store.NOISE, store.WORDS):
        yield f"its kind is '{header.kind}'"
    if features.name != features.path.stem:
        yield f"holds the features of '{features.name}': rename it to {features.name}.h5"
    scale = header.encoder.get("logit_scale")
    if not isinstance(scale, float | int) or not 0 < scale < np.inf:
        yield f"its logit scale is {scale}, must be above 0"


def _of_features(features: store.FeatureSet) -> Iterator[str]:
    norms = row_norms(features.image_features)
    if not len(norms) and features.kind != store.WORDS:
        yield "holds no features"
    for what, bad in (("not finite", ~np.isfinite(norms)), ("zero", norms == 0)):
        if bad.any():
            yield f"{bad.sum():,} features are {what} (the first in row {bad.argmax()})"
    if features.normalized and (abs(norms - 1) > UNIT_TOLERANCE).any():
        yield "is marked as normalised, but norms are not 1"
    if features.labels.min(initial=0) < -1:
        yield f"has the label {features.labels.min()}, must be -1 (none) or more"


def _of_texts(features: store.FeatureSet) -> Iterator[str]:
    for template, text in features.text_features.items():
        norms = row_norms(text)
        if not (abs(norms - 1) < TEXT_TOLERANCE).all():  # also where a norm is not a number
            yield f"text features of '{template}' have norms other than 1"


def _of_ids(features: store.FeatureSet, ids: Sequence[str]) -> Iterator[str]:
    if len(ids) != len(features):
        yield f"has {len(ids):,} sample ids for {len(features):,} features"
    if len(set(ids)) < len(ids):
        yield f"{len(ids) - len(set(ids)):,} sample ids are there twice"


def _files(root: Path, encoder: str | None) -> list[Path]:
    """Feature files, in order; `encoder` is a folder's name and never a pattern."""
    found = root.glob("*/*.h5")
    files = [path for path in found if not path.name.startswith(".") and path.is_file()]
    return sorted(path for path in files if encoder in (None, path.parent.name))


def _entry(path: Path) -> Entry:
    try:
        return Entry(path, path.stat().st_size, read_header(path))
    except StoreError as error:
        reason = re.search(r"\((.*)\)", str(error))
        return Entry(path, path.stat().st_size, problem=f"broken: {reason[1] if reason else error}")


def _unfinished(path: Path) -> Entry:
    parts = list(path.glob("*.npz"))
    size = sum(part.stat().st_size for part in parts)
    return Entry(path, size, problem=f"unfinished: {len(parts)} parts")
