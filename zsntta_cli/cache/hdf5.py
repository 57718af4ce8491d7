"""Feature files (HDF5); only this module and the guard that it reads through use h5py.

`features/<encoder slug>/<name>.h5` is either absent or whole: it appears by an atomic rename of a
finished, fsynced file. Until then the work lies in parts beside it (see extraction/parts.py).
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import FeatureSet, Header, PartOf, Text
from zsntta_cli.cache.guard import Budget, GuardedGroup
from zsntta_cli.cache.origin import machine_facts
from zsntta_cli.cache.soundness import faults, is_scale
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import input_size, whole_file

FORMAT = 1
_KINDS = {  # what a file holds, the attribute with its format, what to do if the file is broken
    "feature": ("features", "format", "delete it and extract again"),
    "state": ("state", "state_format", "delete it and begin anew"),
}


@contextlib.contextmanager
def _writable(path: Path, mode: str) -> Iterator[h5py.File]:
    """Open a file to write to; Python writes it, so a full disk is an error of the system."""
    with open(path, f"{mode[0]}+b") as raw, h5py.File(raw, mode, libver="v110") as file:
        yield file


def write_features(
    path: Path,
    *,
    kind: str,
    name: str,
    encoder: Mapping[str, Any],
    source: Mapping[str, Any],
    blocks: Iterable[NDArray[np.floating]],
    labels: NDArray[np.int32],
    sample_ids: Sequence[str],
    class_names: Sequence[str] = (),
    texts: Sequence[Text] = (),
    normalized: bool = False,
    machine: Mapping[str, Any] | None = None,
    created: str | None = None,
    part: PartOf | None = None,
) -> str:
    """Write a feature file from blocks of rows in order, and return its digest.

    One block is in memory at a time. `machine` and `created` say what made the features (origin.py)
    and when, if the features are older than this file; otherwise this process makes them now.

    Raises:
        StoreError: the file cannot be written; no incomplete file is left.
    """
    with whole_file(path) as temporary, _writable(temporary, "w") as file:
        digest = _write_rows(file, blocks, labels)
        _write_strings(file, "sample_ids", sample_ids)
        file.attrs.update(format=FORMAT, normalized=normalized)
        _write_attrs(
            file, kind=kind, name=name, digest=digest, encoder=json.dumps(encoder),
            source=json.dumps(source),
            machine=json.dumps(machine_facts() if machine is None else machine),
            created=datetime.now(UTC).isoformat(timespec="seconds") if created is None else created,
        )  # fmt: skip
        if class_names:
            _write_strings(file, "class_names", class_names)
        for text in texts:
            _write_text(file, text)
        if part:
            file.attrs.update(part=part.index, of_parts=part.of)
            _write_attrs(file, set_digest=part.set_digest)
        _write_seal(file)
    return digest


def _write_rows(
    file: h5py.File,
    blocks: Iterable[NDArray[np.floating]],
    labels: NDArray[np.int32],
) -> str:
    """Write the blocks below each other, and return their digest."""
    digest = hashlib.sha256()
    start, rows = 0, None
    for block in blocks:
        if rows is None:
            rows = file.create_dataset("image_features", (len(labels), block.shape[1]), block.dtype)
        rows[start : start + len(block)] = block
        start += len(block)
        digest.update(np.ascontiguousarray(block).data)
    assert start == len(labels), f"{start} feature rows for {len(labels)} labels"
    file["labels"] = labels
    digest.update(np.ascontiguousarray(labels).data)
    return digest.hexdigest()


# Strings are stored with a fixed length. Strings of variable length lie in a heap, and HDF5 loops
# for ever in a heap that is damaged.


def _write_attrs(group: h5py.Group, **values: str) -> None:
    for name, value in values.items():
        raw = np.array(value.encode(errors="surrogateescape"))
        group.attrs.create(name, raw, dtype=h5py.string_dtype("utf-8", max(1, raw.itemsize)))


def _write_strings(file: h5py.File, name: str, values: Sequence[str]) -> None:
    raw = np.array([value.encode(errors="surrogateescape") for value in values], dtype=np.bytes_)
    dtype = h5py.string_dtype("utf-8", max(1, raw.itemsize))
    file.create_dataset(name, data=raw.astype(dtype))


def _write_text(file: h5py.File, text: Text) -> None:
    group = file.create_group(
        f"text/{hashlib.sha256(text.template.encode(errors='surrogateescape')).hexdigest()[:16]}"
    )
    digest = hashlib.sha256(np.ascontiguousarray(text.features).data).hexdigest()
    _write_attrs(group, template=text.template, digest=digest)
    if text.logit_scale is not None:
        _write_attrs(group, logit_scale=repr(float(text.logit_scale)))
    group["text_features"] = text.features


_SEAL = "seal"
_OWN_SIZE = 2**40  # bytes: a file that is written here needs no bound
_SEALED, _SEALED_OF_TEXT = ("encoder", "digest"), ("template", "digest", "logit_scale")


def _write_seal(file: h5py.File) -> None:
    """Seal a finished file: write the digest of what its `digest` does not cover."""
    file.flush()
    group = GuardedGroup(file, Budget(_OWN_SIZE))
    if _SEAL in file.attrs:
        del file.attrs[_SEAL]
    _write_attrs(file, seal=_seal_of(group))


def _seal_of(file: GuardedGroup) -> str:
    """The SHA-256 over the encoder's identity, the class names, the texts and the file's digest.

    Features and texts enter by their digests, so the seal is computed without reading them.
    """
    sealed = {
        **{name: file.text(name) for name in _SEALED},
        "normalized": bool(file.number("normalized")),
        "class_names": file.strings("class_names") if "class_names" in file else (),
        "texts": sorted(
            [group.text(name) if group.says(name) else "" for name in _SEALED_OF_TEXT]
            for group in file.groups("text")
        ),
    }
    return hashlib.sha256(json.dumps(sealed).encode()).hexdigest()


def _check_seal(file: GuardedGroup) -> None:
    """Refuse a file whose sealed content was exchanged since."""
    if file.text(_SEAL) != _seal_of(file):
        raise ValueError(
            "its encoder, class names or text features are not those that it was written with"
        )


@contextlib.contextmanager
def open_checked(path: Path, kind: str = "feature") -> Iterator[GuardedGroup]:
    """Open a file of this package, to be read through the guard.

    Errors that are raised within become a StoreError, too: most damage shows while it is read.

    Raises:
        StoreError: there is no such file, it cannot be read, or it is broken.
    """
    what, mark, remedy = _KINDS[kind]
    if not path.exists():
        raise StoreError(f"no {what} at {path}.")
    try:
        size = input_size(path)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error
    try:
        with h5py.File(os.fsencode(path), "r") as file:
            group = GuardedGroup(file, Budget(size))
            if (version := group.number(mark)) != FORMAT:
                raise StoreError(
                    f"{path} was made by another version ({mark} {version}): {remedy}."
                )
            yield group
    except StoreError:
        raise
    except MemoryError as error:
        raise StoreError(f"cannot read {path}: there is not enough memory.") from error
    except Exception as error:  # h5py raises nearly anything for damaged files
        message = f"{path} is not a whole zsntta {kind} file ({first_line(error)}): {remedy}."
        raise StoreError(message) from error


def read_features(path: Path) -> FeatureSet:
    """Read a feature file and check that it is whole and sound: StoreError if it is not."""
    with open_checked(path) as file:
        features = _read(path, file)
    if problems := list(faults(features)):
        what = "; ".join(problems)
        raise StoreError(f"{features.path} cannot be used: {what}.", remedy="make-again")
    return features


def _check_digest(digest: Any, expected: str) -> None:
    if digest.hexdigest() != expected:
        raise ValueError("its content does not match its digest")


def _read(path: Path, file: GuardedGroup) -> FeatureSet:
    rows, dim = _rows_and_dim(file)
    features = file.array("image_features", (rows, dim), np.float16, np.float32)
    labels = file.array("labels", (rows,), np.int32)
    digest = hashlib.sha256(features.data)
    digest.update(labels.data)
    _check_digest(digest, file.text("digest"))
    return _content(path, file, features, labels)


def read_part(path: Path) -> PartOf:
    """Read which part of a set a feature file has.

    Raises:
        StoreError: the file is broken, or has a whole set.
    """
    with open_checked(path) as file:
        if not (file.says("part") and file.says("of_parts")):
            raise StoreError(f"{path} is not a part of a set.")
        return PartOf(file.number("part"), file.number("of_parts"), file.text("set_digest"))


def _content(
    path: Path,
    file: GuardedGroup,
    features: NDArray[np.floating],
    labels: NDArray[np.int32],
) -> FeatureSet:
    _check_seal(file)
    class_names = file.strings("class_names") if "class_names" in file else ()
    if labels.max(initial=-1) >= max(len(class_names), 1) and class_names:
        raise ValueError("a label has no class name")
    return FeatureSet(
        path, file.text("kind"), _name(path, file), file.mapping("encoder"),
        file.mapping("source"), file.text("digest"), features, labels, class_names,
        _read_texts(file, len(class_names), features.shape[1]), bool(file.number("normalized")),
        file.text("created"), file.mapping("machine"), _read_scales(file),
    )  # fmt: skip


def _name(path: Path, file: GuardedGroup) -> str:
    """The set's name, spelt as in the file's path if both have the same bytes.

    Where Python decodes paths as ASCII, other letters of a path are escaped bytes (LC_ALL=C).
    """
    name = file.text("name")
    same = name.encode(errors="surrogateescape") == path.stem.encode(errors="surrogateescape")
    return path.stem if same else name


def _rows_and_dim(file: GuardedGroup) -> tuple[int, int]:
    """N and D of the features; the number of sample ids, which are not read, must be N."""
    shape = file.shape("image_features")
    if len(shape) != 2:
        raise ValueError(f"image_features are {shape}, must be (N, D)")
    ids = file.count("sample_ids")
    if ids != shape[0]:
        raise ValueError(f"it has {ids:,} sample ids for {shape[0]:,} features")
    return shape[0], shape[1]


def _read_texts(file: GuardedGroup, classes: int, dim: int) -> dict[str, NDArray[np.float32]]:
    texts = {}
    for group in file.groups("text"):
        features = group.array("text_features", (classes, dim), np.float32)
        if hashlib.sha256(features.data).hexdigest() != group.text("digest"):
            raise ValueError("its text features do not match their digest")
        texts[group.text("template")] = features
    return texts


def _read_scales(file: GuardedGroup) -> dict[str, float]:
    """Read the logit scales of the templates that have one of their own."""
    scales = {}
    for group in file.groups("text"):
        if group.says("logit_scale"):
            scale = float(group.text("logit_scale"))
            if not is_scale(scale):
                raise ValueError(f"the logit scale of its text features is {scale}")
            scales[group.text("template")] = scale
    return scales


def read_header(path: Path) -> Header:
    """Read the description of a feature file: StoreError if it is broken."""
    with open_checked(path) as file:
        images, dim = _rows_and_dim(file)
        _check_seal(file)
        return Header(
            file.text("kind"), images, dim, str(file.dtype("image_features")),
            file.count("class_names") if "class_names" in file else 0,
            tuple(group.text("template") for group in file.groups("text")),
            bool(file.number("normalized")), file.text("created"), file.mapping("encoder"),
            file.text("digest"), tuple(group.text("digest") for group in file.groups("text")),
            _read_scales(file), file.mapping("source"),
        )  # fmt: skip


def read_sample_ids(path: Path) -> tuple[str, ...]:
    """Read the sample ids (N,) of a feature file."""
    with open_checked(path) as file:
        _rows_and_dim(file)
        return file.strings("sample_ids")


def add_texts(path: Path, texts: Sequence[Text]) -> None:
    """Add class text features to a copy of a feature file, which then takes the file's place."""
    with whole_file(path) as temporary:
        shutil.copyfile(path, temporary)
        with _writable(temporary, "r+") as file:
            for text in texts:
                _write_text(file, text)
            _write_seal(file)


def write_table(
    path: Path, columns: Mapping[str, NDArray[Any]], header: Mapping[str, Any] | None = None
) -> None:
    """Write arrays of numbers or strings to an HDF5 file; with a header, the file is a state."""
    with whole_file(path) as temporary, _writable(temporary, "w") as file:
        if header is not None:
            file.attrs.update(state_format=FORMAT)
            _write_attrs(file, header=json.dumps(header))
        for name, column in columns.items():
            if column.dtype == object:
                _write_strings(file, name, column.tolist())
            else:
                file[name] = column


def read_state(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any] | tuple[str, ...]]]:
    """Read the header and the columns of a state: StoreError if it is broken."""
    with open_checked(path, "state") as file:
        return file.mapping("header"), dict(file.tables())
