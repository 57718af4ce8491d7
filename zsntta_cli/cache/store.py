"""Feature files, `features/ENCODER/SET.h5`: written, read and checked; only this module uses h5py.

A file is absent or complete: it appears by an atomic rename of a finished, durable file. It has the
image features (N, D), labels (N,), sample ids (N,), class names (C,), for each prompt template the
classes' text features (C, D), and optionally the encoder's generic text (D,). Its digest covers
features and labels; its seal covers the encoder's identity, the class names, all texts and the
digest.

A file may come from a stranger. Links, external and virtual storage, filters, and declared sizes
beyond the file's own are therefore refused before any data are read.
"""

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.identity import TEXT_TOLERANCE, UNIT_TOLERANCE
from zsntta_cli.datasets.names import DATASET, NOISE, WORDS
from zsntta_cli.errors import StoreError, counted, first_line
from zsntta_cli.files import open_regular, whole_file
from zsntta_cli.settings.options import LARGEST_SCALE, is_bias, is_scale

FORMAT = 1
_GENERIC = "generic_text"
_SAMPLED = 256  # rows whose norms are checked whenever a file is read
_BLOCK = 8192  # rows in double precision at a time
_Member = TypeVar("_Member", h5py.Dataset, h5py.Group)


@dataclass(frozen=True)
class Text:
    """The text features of all classes under one prompt template."""

    template: str
    features: NDArray[np.float32]  # (C, D) unit norm; (0, D) where only the description was read
    logit_scale: float | None = None  # classes that are made of photos have their own
    digest: str = ""  # sha256 of the features, as the file says it

    @property
    def scale(self) -> str:
        """Its own logit scale as stored in a file; empty for the encoder's."""
        return "" if self.logit_scale is None else repr(float(self.logit_scale))


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def digest_of(*arrays: NDArray[Any]) -> str:
    """The SHA-256 of the bytes of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Features:
    """One feature file: its attributes and arrays, without its sample ids."""

    path: Path
    kind: str
    name: str
    identity: Mapping[str, Any]  # of the encoder
    source: Mapping[str, Any]  # of the images
    image_features: NDArray[np.floating]  # (N, D) float16 or float32, raw unless `normalized`
    labels: NDArray[np.int32]  # (N,), -1 = none
    class_names: tuple[str, ...] = ()
    texts: Mapping[str, Text] = field(default_factory=dict)  # by template
    # The mean (D,) of the unit features of texts on anything: a vector whose norm is below 1, and
    # which must not be normalised.
    generic: NDArray[np.float32] | None = None
    generic_source: str = ""  # its words and their prompt
    normalized: bool = False
    machine: Mapping[str, Any] = field(default_factory=dict)  # what made it
    created: str = field(default_factory=now)
    digest: str = ""  # sha256 of features and labels

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def dim(self) -> int:
        """The dimensions of an image's features, D."""
        return int(self.image_features.shape[1])

    @property
    def seal(self) -> str:
        """The SHA-256 of what must not change; features and texts enter by their digests."""
        sealed: dict[str, Any] = {
            "encoder": json.dumps(self.identity),
            "digest": self.digest,
            "normalized": self.normalized,
            "class_names": self.class_names,
            "texts": sorted(map(attrgetter("template", "digest", "scale"), self.texts.values())),
        }
        if self.generic is not None:
            sealed["generic"] = self.generic_source, digest_of(self.generic)
        return hashlib.sha256(json.dumps(sealed).encode()).hexdigest()

    def model(self, template: str) -> dict[str, Any]:
        """The encoder's identity, with the logit scale that belongs to a template."""
        scale = self.texts[template].logit_scale if template in self.texts else None
        if scale is None:
            return {**self.identity}
        return {**self.identity, "logit_scale": scale, "logit_bias": None}


def write(new: Features, sample_ids: Sequence[str] | None = None) -> Features:
    """Write a feature file, and return its features with their digests.

    Without `sample_ids`, the file must exist, and keeps its own.

    Raises:
        StoreError: the file cannot be written; no incomplete file remains.
    """
    sample_ids = read_sample_ids(new.path) if sample_ids is None else sample_ids
    texts = {key: replace(text, digest=digest_of(text.features)) for key, text in new.texts.items()}
    new = replace(new, digest=digest_of(new.image_features, new.labels), texts=texts)
    with (
        whole_file(new.path) as temporary,
        open(temporary, "w+b") as raw,  # Python writes: a full disk is an error of the system
        h5py.File(raw, "w", libver="v110") as file,
    ):
        file["image_features"], file["labels"] = new.image_features, new.labels
        _write_strings(file, "sample_ids", sample_ids)
        file.attrs.update(format=FORMAT, normalized=new.normalized)
        _write_attrs(
            file, kind=new.kind, name=new.name, digest=new.digest,
            encoder=json.dumps(new.identity), source=json.dumps(new.source),
            machine=json.dumps(new.machine), created=new.created,
        )  # fmt: skip
        if new.class_names:
            _write_strings(file, "class_names", new.class_names)
        for template, text in texts.items():
            key = hashlib.sha256(template.encode(errors="surrogateescape")).hexdigest()[:16]
            group = file.create_group(f"text/{key}")
            _write_attrs(group, template=template, digest=text.digest)
            if text.scale:
                _write_attrs(group, logit_scale=text.scale)
            group["text_features"] = text.features
        if new.generic is not None:
            file[_GENERIC] = new.generic
            _write_attrs(file[_GENERIC], source=new.generic_source)
        _write_attrs(file, seal=new.seal)
    return new


# Strings have a fixed length: HDF5 keeps those of variable length in a heap, and if a heap is
# damaged, it loops for ever.


def _write_attrs(group: h5py.Group, **values: str) -> None:
    for name, value in values.items():
        raw = np.array(value.encode(errors="surrogateescape"))
        group.attrs.create(name, raw, dtype=h5py.string_dtype("utf-8", max(1, raw.itemsize)))


def _write_strings(file: h5py.File, name: str, values: Sequence[str]) -> None:
    raw = np.array([value.encode(errors="surrogateescape") for value in values], dtype=np.bytes_)
    dtype = h5py.string_dtype("utf-8", max(1, raw.itemsize))
    file.create_dataset(name, data=raw.astype(dtype))


def read(path: Path, rows: bool = True) -> Features:
    """Read a feature file, and check that it is complete and sound.

    Without `rows` this is its description: features (0, D) and text features (0, D), unchecked.

    Raises:
        StoreError: the file does not exist, cannot be read, or is incomplete or unsound.
    """
    with _opened(path) as file:
        features = _read(path, file, rows)
    if rows and (wrong := [*faults(features)]):
        raise StoreError(
            f"{path} cannot be used: {'; '.join(wrong)}: delete it, and extract or import it again."
        )
    return features


def read_sample_ids(path: Path) -> tuple[str, ...]:
    """Read the sample ids (N,) of a feature file: StoreError if it is broken."""
    with _opened(path) as file:
        return _strings(file, "sample_ids")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    """Open a feature file; errors raised within become a StoreError, too."""
    if not path.exists():
        raise StoreError(f"no features at {path}.")
    try:
        open_regular(path).close()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error
    try:
        with h5py.File(os.fsencode(path), "r") as file:
            if (version := int(_attribute(file, "format", np.integer))) != FORMAT:
                raise ValueError(f"its format is {version}, must be {FORMAT}")
            yield file
    except MemoryError as error:
        raise StoreError(f"cannot read {path}: not enough memory.") from error
    except Exception as error:  # h5py raises nearly anything for damaged files
        raise StoreError(
            f"{path} is not a complete zsntta feature file ({first_line(error)}): delete it and "
            f"extract again."
        ) from error


def _read(path: Path, file: h5py.File, rows: bool) -> Features:
    wanted = slice(None) if rows else slice(0)
    stored = _data(file, "image_features", (None, None), np.float16, np.float32)
    count, dim = stored.shape
    labels = _data(file, "labels", (count,), np.int32)[()]
    _data(file, "sample_ids", (count,))
    class_names = _strings(file, "class_names") if "class_names" in file else ()
    texts, under = {}, _member(file, "text", h5py.Group) if "text" in file else {}
    for key in under:
        group = _member(under, key, h5py.Group)
        text = Text(
            _attribute(group, "template"),
            _data(group, "text_features", (len(class_names), dim), np.float32)[wanted],
            float(_attribute(group, "logit_scale")) if "logit_scale" in group.attrs else None,
            _attribute(group, "digest"),
        )
        if rows and digest_of(text.features) != text.digest:
            raise ValueError("its text features do not match their digest")
        texts[text.template] = text
    generic, generic_source = None, ""
    if _GENERIC in file:
        data = _data(file, _GENERIC, (dim,), np.float32)
        generic, generic_source = data[()], _attribute(data, "source")
    features = Features(
        path, _attribute(file, "kind"), _attribute(file, "name"), _attribute(file, "encoder", dict),
        _attribute(file, "source", dict), stored[wanted], labels, class_names, texts,
        generic, generic_source, bool(_attribute(file, "normalized", np.bool_)),
        _attribute(file, "machine", dict), _attribute(file, "created"), _attribute(file, "digest"),
    )  # fmt: skip
    if _attribute(file, "seal") != features.seal:
        raise ValueError(
            "its encoder, class names or text features were changed after it was written"
        )
    if rows and digest_of(features.image_features, labels) != features.digest:
        raise ValueError("its content does not match its digest")
    return features


def _member(group: h5py.Group, name: str, kind: type[_Member]) -> _Member:
    """A data set or a group behind a hard link; no other link is followed."""
    is_own = isinstance(group.get(name, getlink=True), h5py.HardLink)
    if not is_own or not isinstance(member := group[name], kind):
        raise ValueError(f"its {kind.__name__.lower()} '{name}' is missing, or a link")
    return member


def _data(
    group: h5py.Group, name: str, shape: tuple[int | None, ...], *dtypes: type[np.generic]
) -> h5py.Dataset:
    """Find a data set that is stored plainly in the file; None in `shape` means any length.

    It must have one of `dtypes`, or hold texts of a fixed length if none are given.
    """
    data = _member(group, name, h5py.Dataset)
    plan, stored, lengths = data.id.get_create_plist(), data.id.get_storage_size(), data.shape or ()
    is_plain = plan.get_layout() == h5py.h5d.CONTIGUOUS and not plan.get_nfilters()
    declared = math.prod(lengths) * data.id.get_type().get_size()
    is_here = not plan.get_external_count() and declared == stored <= data.file.id.get_filesize()
    is_once = h5py.h5o.get_info(data.id).rc == 1  # or a small file may hold the same many times
    if not (is_plain and is_here and is_once):
        raise ValueError(f"'{name}' is not stored as a plain data set")
    fits = len(lengths) == len(shape)
    for wanted, length in zip(shape, lengths, strict=False):
        fits = fits and wanted in (None, length)
    if not fits or (data.dtype not in dtypes if dtypes else data.dtype.kind != "S"):
        types = " or ".join(dtype.__name__ for dtype in dtypes) or "texts"
        raise ValueError(f"{name} is {data}, must be {types} of shape {shape}")
    return data


def _strings(file: h5py.File, name: str) -> tuple[str, ...]:
    texts = _data(file, name, (None,)).asstr("utf-8", "surrogateescape")
    return tuple(texts[()].tolist())


def _attribute(member: h5py.Dataset | h5py.Group, name: str, kind: type = str) -> Any:
    """A single number or text of a kind from an attribute; a dictionary is parsed from JSON."""
    if name not in member.attrs:
        raise ValueError(f"it has no attribute '{name}'")
    stored = member.attrs.get_id(name)
    value = member.attrs[name] if stored.shape == () and stored.dtype.kind in "iubS" else None
    if isinstance(value, bytes):
        value = value.decode(errors="surrogateescape")
    if kind is dict and isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, kind):
        raise ValueError(f"its attribute '{name}' is not of type {kind.__name__}")
    return value


def problems(path: Path) -> list[str]:
    """Read a feature file completely, and list what is wrong with it; nothing if it is sound."""
    try:
        features, ids = read(path), read_sample_ids(path)
    except StoreError as error:
        return [str(error)]
    wrong = [*faults(features, every_row=True)]
    if features.name != path.stem:
        wrong.append(f"holds the features of '{features.name}': rename it to {features.name}.h5")
    if twice := len(ids) - len(set(ids)):
        wrong.append(f"has {counted(twice, 'duplicate')} among its sample ids")
    return wrong


def faults(features: Features, every_row: bool = False) -> Iterator[str]:
    """Describe what is wrong with features; nothing if they are sound.

    Norms are computed for some rows only, unless `every_row`. Scores, which are computed before any
    result, detect features that are not finite.
    """
    identity, rows = features.identity, features.image_features
    scale, bias = identity.get("logit_scale"), identity.get("logit_bias")
    if features.kind not in (DATASET, NOISE, WORDS):
        yield f"its kind is '{features.kind}', must be {DATASET}, {NOISE} or {WORDS}"
    if not is_scale(scale):
        yield f"its logit scale is {scale}, must be above 0 and at most {LARGEST_SCALE:g}"
    if bias is not None and not is_bias(bias):
        yield f"its logit bias is {bias}, must be a number"
    for key in ("model", "pretrained", "precision", "weights_sha256"):
        if not isinstance(identity.get(key), str | None):
            yield f"its encoder's {key} is not a text"
    for key in ("images", "limit"):
        value = features.source.get(key)
        if not isinstance(value, int | None) or isinstance(value, bool) or (value or 0) < 0:
            yield f"its source's {key} is not a whole number"
    if (lowest := features.labels.min(initial=0)) < -1:
        yield f"has the label {lowest}, must be -1 (none) or more"
    if (highest := features.labels.max(initial=-1)) >= (classes := len(features.class_names)) > 0:
        yield f"has the label {highest}, must be below {classes}: classes are counted from 0"
    if not len(rows) and features.kind != WORDS:
        yield "holds no features"
    suspects = np.flatnonzero((rows[:, :1] == 0).all(axis=1))  # few, unless whole rows are zero
    if len(zero := suspects[~rows[suspects].any(axis=1)]):
        yield f"has only zeros in {counted(len(zero), 'row')} (the first is {zero[0]})"
    norms = row_norms(rows if every_row else rows[:: 1 + len(rows) // _SAMPLED])
    if every_row and (bad := ~np.isfinite(norms)).any():
        count = counted(bad.sum(), "row")
        yield f"has values that are not finite in {count} (the first is {bad.argmax()})"
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
