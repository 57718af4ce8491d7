"""Feature files (HDF5); only this module and the guard that it reads through use h5py.

`features/<encoder slug>/<name>.h5` is either absent or whole: it appears by an atomic rename of a
finished, fsynced file. Until then the work lies in parts beside it (see extraction/parts.py).

A file of format 1 has the features of all its images. A file of format 2 is a set whose features
lie in several files of format 1, its parts. It has the list of the parts, the labels and the text
features, and no image features itself.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import FeatureSet, Header, PartFile, PartOf, Shard, Text
from zsntta_cli.cache.folder import parts_folder
from zsntta_cli.cache.guard import Budget, GuardedGroup
from zsntta_cli.cache.mapped import MappedRows, StoredRows
from zsntta_cli.cache.origin import machine_facts
from zsntta_cli.cache.soundness import faults, is_scale
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import Sink, input_size, whole_file

FORMAT, JOINED = 1, 2
_KINDS = {  # what a file holds, the attribute with its format, what to do if the file is broken
    "feature": ("features", "format", "delete it and extract again"),
    "state": ("state", "state_format", "delete it and begin anew"),
}
_BLOCK = 2**14  # rows of parts that are read at a time
_FORMATS = {"feature": (FORMAT, JOINED), "state": (FORMAT,)}


@contextlib.contextmanager
def _writable(path: Path, mode: str, mapped: bool = False) -> Iterator[h5py.File]:
    """Open a file to write to; if it is to be memory-mapped, its arrays begin at multiples of 64.

    HDF5 crashes the process some time after a write has failed. So the sink accepts every write,
    and its error is raised when HDF5 has closed the file.
    """
    alignment = {"alignment_threshold": 1, "alignment_interval": 64} if mapped else {}
    with Sink(path, mode.replace("w", "w+")) as sink:
        with h5py.File(sink, mode, libver="v110", **alignment) as file:
            yield file
        if sink.error:
            raise sink.error


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

    One block is in memory at a time. A part of a set has one block for each of its shards, whose
    digests are computed here. `machine` and `created` say what made the features (origin.py) and
    when, if the features are older than this file; otherwise this process makes them now.

    Raises:
        StoreError: the file cannot be written; no incomplete file is left.
    """
    with whole_file(path) as temporary, _writable(temporary, "w", part is not None) as file:
        shards = list[Shard]() if part else None
        digest = _write_rows(file, blocks, labels, shards)
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
        if part and shards is not None:
            _write_part(file, part, shards)
        _write_seal(file)
    return digest


def _write_part(file: h5py.File, part: PartOf, shards: Sequence[Shard]) -> None:
    """Write which part of a set a file has, and the digest of each of its shards.

    A part without images has no shard, but it has one block without rows.
    """
    file.attrs.update(part=part.index, of_parts=part.of)
    lines = [
        json.dumps({**shard._asdict(), "name": planned.name})
        for planned, shard in zip(part.shards, shards[: len(part.shards)], strict=True)
    ]
    _write_strings(file, "shards", lines)
    _write_attrs(file, set_digest=part.set_digest)


def write_joined(
    path: Path,
    whole: FeatureSet,
    labels: Iterable[NDArray[np.int32]],
) -> None:
    """Write a set whose features lie in parts: `whole` without its features, `labels` in blocks.

    Raises:
        StoreError: the file cannot be written; no incomplete file is left.
    """
    with whole_file(path) as temporary, _writable(temporary, "w") as file:
        count, start = sum(part.images for part in whole.parts), 0
        column, of_labels = file.create_dataset("labels", (count,), np.int32), hashlib.sha256()
        for block in labels:
            column[start : start + len(block)] = block
            start += len(block)
            of_labels.update(np.ascontiguousarray(block).data)
        assert start == count, f"{start} labels for {count} features"
        rows = whole.image_features
        file.create_dataset("image_features", (0, rows.shape[1]), rows.dtype)
        file.attrs.update(format=JOINED, normalized=whole.normalized)
        _write_attrs(
            file, kind=whole.kind, name=whole.name, digest=whole.digest,
            encoder=json.dumps(whole.identity), source=json.dumps(whole.source),
            machine=json.dumps(whole.machine), created=whole.created,
            labels_digest=of_labels.hexdigest(),
        )  # fmt: skip
        if whole.class_names:
            _write_strings(file, "class_names", whole.class_names)
        for text in whole.texts():
            _write_text(file, text)
        lines = [
            json.dumps({**vars(part), "path": part.path.relative_to(path.parent).as_posix()})
            for part in whole.parts
        ]
        _write_strings(file, "parts", lines)
        _write_seal(file)


def _write_rows(
    file: h5py.File,
    blocks: Iterable[NDArray[np.floating]],
    labels: NDArray[np.int32],
    shards: list[Shard] | None = None,
) -> str:
    """Write the blocks below each other; the list `shards`, if given, gets the digest of each."""
    digest = hashlib.sha256()
    start, rows = 0, None
    for block in blocks:
        if shards is not None:
            of_block = labels[start : start + len(block)]
            shards.append(Shard("", len(block), digest_of_rows(block, of_block)))
        if rows is None:
            rows = file.create_dataset("image_features", (len(labels), block.shape[1]), block.dtype)
        rows[start : start + len(block)] = block
        start += len(block)
        digest.update(np.ascontiguousarray(block).data)
    assert start == len(labels), f"{start} feature rows for {len(labels)} labels"
    file["labels"] = labels
    digest.update(np.ascontiguousarray(labels).data)
    return digest.hexdigest()


def digest_of_rows(rows: NDArray[np.floating], labels: NDArray[np.int32]) -> str:
    """The SHA-256 over features (N, D) and labels (N,)."""
    digest = hashlib.sha256(np.ascontiguousarray(rows).data)
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
    """Refuse a file whose sealed content was exchanged since; older files have no seal."""
    if file.says(_SEAL) and file.text(_SEAL) != _seal_of(file):
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
            version = group.number(mark) if group.says(mark) else 0
            if version not in (readable := _FORMATS[kind]):
                newer = ", of a newer version" if version > max(readable) else ""
                raise ValueError(f"{mark} is {version or None}{newer}, must be {FORMAT}")
            yield group
    except StoreError:
        raise
    except MemoryError as error:
        raise StoreError(f"cannot read {path}: there is not enough memory.") from error
    except Exception as error:  # h5py raises nearly anything for damaged files
        message = f"{path} is not a whole zsntta {kind} file ({first_line(error)}): {remedy}."
        raise StoreError(message) from error


@contextlib.contextmanager
def _open_foreign(path: Path) -> Iterator[GuardedGroup]:
    """Open an HDF5 file of another tool; what h5py raises is for the caller to word."""
    with h5py.File(os.fsencode(path), "r") as file:
        yield GuardedGroup(file, Budget(input_size(path)))


def is_foreign(path: Path) -> bool:
    """Whether a file is an HDF5 of another tool: one that can be opened and has no format."""
    try:
        with _open_foreign(path) as file:
            return not file.says("format")
    except Exception:  # broken, or no HDF5: whoever reads it says so
        return False


def matrices(path: Path) -> list[str]:
    """The names of the data sets (N, D) of numbers in an HDF5 file of another tool."""
    with _open_foreign(path) as file:
        return list(file.matrices())


def read_matrix(path: Path, name: str) -> NDArray[Any]:
    """Read a data set of numbers of an HDF5 file of another tool, by its name.

    Raises:
        ValueError: there is no such data set, or it is not of numbers.
    """
    with _open_foreign(path) as file:
        names = list(file.matrices(None))
        if name not in names:
            raise ValueError(f"'{name}' is no data set of it: it has {', '.join(names) or 'none'}")
        return file.any_array(name)


def read_features(path: Path) -> FeatureSet:
    """Read a feature file and check that it is whole and sound: StoreError if it is not."""
    with open_checked(path) as file:
        features = _read(path, file)
    return _sound(features)


def _sound(features: FeatureSet) -> FeatureSet:
    """Some features that are sound: StoreError if they are not."""
    if problems := list(faults(features)):
        what = "; ".join(problems)
        raise StoreError(f"{features.path} cannot be used: {what}.", remedy="make-again")
    return features


def in_memory(features: FeatureSet) -> FeatureSet:
    """A set in parts with its image features in memory, as those of other sets are.

    Raises:
        StoreError: a part is broken, or its features are not sound.
    """
    rows, start = np.empty(features.image_features.shape, features.image_features.dtype), 0
    for block in row_blocks(features, _BLOCK):
        rows[start : start + len(block)] = block
        start += len(block)
    return _sound(replace(features, image_features=rows, parts=()))


def read_without_rows(path: Path) -> tuple[FeatureSet, tuple[str, ...]]:
    """Read a feature file with image features of shape (0, D), and its sample ids (N,).

    `row_blocks` reads the rows that are left out: StoreError if the file is broken.
    """
    with open_checked(path) as file:
        if _PARTS in file:
            joined = _read_joined(path, file)
            return joined, tuple(_ids_of_parts(joined.parts))
        rows, dim = _rows_and_dim(file)
        dtype = file.dtype("image_features")
        labels = file.array("labels", (rows,), np.int32)
        return _content(path, file, np.empty((0, dim), dtype), labels), file.strings("sample_ids")


def row_blocks(features: FeatureSet, rows: int) -> Iterator[NDArray[np.floating]]:
    """Read the image features that `read_without_rows` left out, `rows` at a time, in order.

    Raises:
        StoreError: the features do not match their digest, which is known at the last block.
    """
    if features.parts:
        yield from _blocks_of_parts(features.parts, rows)
        return
    count, digest = len(features), hashlib.sha256()
    with open_checked(features.path) as file:
        blocks = file.blocks(
            "image_features", rows, (count, features.dim), features.image_features.dtype
        )
        for start, block in zip(range(0, count, rows), blocks, strict=True):
            digest.update(block.data)
            if start + rows >= count:
                digest.update(features.labels.data)
                _check_digest(digest, features.digest)
            yield block


def _blocks_of_parts(parts: Sequence[PartFile], rows: int) -> Iterator[NDArray[np.floating]]:
    """Read the image features of all parts in order, and check that each part is the joined one."""
    for part in parts:
        features, _ = read_without_rows(part.path)
        _check_part(part, features.digest, len(features))
        yield from row_blocks(features, rows)


def _ids_of_parts(parts: Sequence[PartFile]) -> Iterator[str]:
    for part in parts:
        yield from read_sample_ids(part.path)


def _check_part(part: PartFile, digest: str, images: int) -> None:
    """Refuse a part that is another file than the one that was joined."""
    if (digest, images) != (part.digest, part.images):
        raise StoreError(
            f"{part.path} is another part than the one that was joined: make it again, then join.",
            remedy="join-again",
        )


def _check_digest(digest: Any, expected: str) -> None:
    if digest.hexdigest() != expected:
        raise ValueError("its content does not match its digest")


def _read(path: Path, file: GuardedGroup) -> FeatureSet:
    if _PARTS in file:
        return _read_joined(path, file)
    rows, dim = _rows_and_dim(file)
    features = file.array("image_features", (rows, dim), np.float16, np.float32)
    labels = file.array("labels", (rows,), np.int32)
    digest = hashlib.sha256(features.data)
    digest.update(labels.data)
    _check_digest(digest, file.text("digest"))
    return _content(path, file, features, labels)


_PARTS = "parts"


def _read_joined(path: Path, file: GuardedGroup) -> FeatureSet:
    """Read a set whose features lie in parts; each must exist and have the size that it had."""
    parts = _read_parts(path, file)
    dim, dtype = file.shape("image_features")[1], file.dtype("image_features")
    if dtype not in (np.float16, np.float32):
        raise ValueError(f"image_features are {dtype}")
    labels = file.array("labels", (sum(part.images for part in parts),), np.int32)
    if file.says("labels_digest"):  # older files have none; `cache verify` reads their parts
        _check_digest(hashlib.sha256(labels.data), file.text("labels_digest"))

    def map_part(i: int) -> NDArray[np.floating]:
        return _map_rows(parts[i], dim, dtype)

    rows = MappedRows([part.images for part in parts], dim, dtype, map_part)
    return replace(_content(path, file, rows, labels), parts=parts)


def _read_parts(path: Path, file: GuardedGroup) -> tuple[PartFile, ...]:
    """Read the list of a joined set's parts, which lie in the folder beside it.

    Raises:
        StoreError: a part is missing, or has another size now.
    """
    parts = []
    for line in file.strings(_PARTS):
        values = json.loads(line)
        name = PurePosixPath(str(values["path"])).name  # only in that folder, whatever it says
        part = PartFile(
            parts_folder(path) / name, int(values["images"]), int(values["size"]), values["digest"]
        )
        size = part.path.stat().st_size if part.path.is_file() else None
        if size != part.size or part.images < 0:
            what = "is missing" if size is None else f"has {size:,} bytes, not {part.size:,}"
            raise StoreError(
                f"{path} was joined from parts, and {part.path} {what}", remedy="join-again"
            )
        parts.append(part)
    return tuple(parts)


def _map_rows(part: PartFile, dim: int, dtype: np.dtype[Any]) -> NDArray[np.floating]:
    """Map the features of a part, which stay in its file until they are used."""
    shape = part.images, dim
    with open_checked(part.path) as file:
        _check_part(part, file.text("digest"), file.shape("image_features")[0])
        offset = file.offset("image_features", shape, dtype)
    if not part.images:
        return np.empty(shape, dtype)
    return np.memmap(part.path, dtype, "r", offset, shape)


def read_part(path: Path) -> PartOf:
    """Read which part of a set a feature file has, and the shards of that part.

    Raises:
        StoreError: the file is broken, or has a whole set.
    """
    with open_checked(path) as file:
        if not (file.says("part") and file.says("of_parts") and "shards" in file):
            raise StoreError(f"{path} is not a part of a set.")
        shards = []
        for line in file.strings("shards"):
            values = json.loads(line)
            shards.append(Shard(str(values["name"]), int(values["images"]), str(values["digest"])))
        index, of = file.number("part"), file.number("of_parts")
        return PartOf(index, of, file.text("set_digest"), tuple(shards))


def read_labels(path: Path) -> NDArray[np.int32]:
    """Read the labels (N,) of a feature file."""
    with open_checked(path) as file:
        labels: NDArray[np.int32] = file.array("labels", (None,), np.int32)
        return labels


def _content(
    path: Path,
    file: GuardedGroup,
    features: StoredRows,
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
        file.text("created") if file.says("created") else "",
        file.mapping("machine") if file.says("machine") else {},  # older files have none
        _read_scales(file),
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
    if _PARTS in file:
        return file.shape("labels")[0], shape[1]
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
            _read_scales(file), file.count(_PARTS) if _PARTS in file else 0,
            file.mapping("source"),
        )  # fmt: skip


def read_sample_ids(path: Path) -> tuple[str, ...]:
    """Read the sample ids (N,) of a feature file."""
    with open_checked(path) as file:
        if _PARTS in file:
            return tuple(_ids_of_parts(_read_parts(path, file)))
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
