"""Parquet files of features, with one row for each image.

Files are read a batch at a time. Only this module and the files of verdicts use pyarrow, which is
an extra: zsntta[parquet].
"""

import base64
import functools
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.description import KEY, TEXT_KEY
from zsntta_cli.errors import StoreError

ID, LABEL, LABEL_NAME = "sample_id", "label", "label_name"
_FEATURES = ("image_features", "features", "embedding", "embeddings", "image_embedding")
_LABELS = (LABEL, "labels")
_NAMES = "class_names"  # in the metadata, as JSON
_ROWS = 8192  # rows that are read at a time
_LEAST, _TIMES = 2**26, 16  # a file may unpack to 64 MiB, or to 16 times its size if that is more


def _arrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise StoreError(f"{path} is Parquet", remedy="install-parquet") from error
    return pyarrow


@dataclass(frozen=True)
class Listed:
    """The list of images that columns are made of: ids (N,) or none, labels (N,), class names."""

    ids: Sequence[str]
    labels: NDArray[np.int32]
    class_names: Sequence[str]


def write_table(
    path: Path,
    listed: Listed,
    blocks: Iterator[NDArray[np.floating]],
    metadata: Mapping[str, str | bytes],
) -> None:
    """Write features as Parquet, with one row group for each block."""
    arrow, start = _arrow(path), 0
    first = next(blocks)
    number = arrow.float16() if first.itemsize == 2 else arrow.float32()
    vector = arrow.list_(number, first.shape[1])
    kinds = [(name, column.type) for name, column in _columns(arrow, listed, slice(0)).items()]
    schema = arrow.schema([*kinds, (_FEATURES[0], vector)])
    with arrow.parquet.ParquetWriter(path, schema, use_dictionary=[LABEL_NAME]) as writer:
        writer.add_key_value_metadata(metadata)
        for block in itertools.chain([first], blocks):
            values = arrow.array(np.ascontiguousarray(block).ravel(), number)
            columns = _columns(arrow, listed, slice(start, start + len(block)))
            columns[_FEATURES[0]] = arrow.FixedSizeListArray.from_arrays(values, type=vector)
            writer.write_table(arrow.table(columns, schema))
            start += len(block)


def table_metadata(
    description: str, class_names: Sequence[str], texts: Mapping[str, NDArray[np.float32]]
) -> dict[str, str | bytes]:
    """The metadata of a table: the description, the class names and the text features."""
    packed = {key: _packed(text) for key, text in texts.items()}
    return {KEY: description, _NAMES: json.dumps([*class_names]), **packed}


def _columns(arrow: Any, listed: Listed, rows: slice) -> dict[str, Any]:
    """Make columns of ids, labels and their class names; the label -1 has no name."""
    labels, names = listed.labels[rows], [_unicode(name) for name in listed.class_names] or [""]
    is_nameless = (labels < 0) | (not listed.class_names)
    numbers = arrow.array(labels, arrow.int32(), mask=is_nameless)
    columns = {LABEL: arrow.array(labels), LABEL_NAME: arrow.array(names).take(numbers)}
    return ({ID: _id_column(arrow, listed.ids, rows)} if listed.ids else {}) | columns


def _id_column(arrow: Any, ids: Sequence[str], rows: slice) -> Any:
    """Make a column of ids as texts, or all as bytes if one is no Unicode, as file names may be."""
    if all(sample_id.isascii() or _unicode(sample_id) == sample_id for sample_id in ids):
        return arrow.array(ids[rows], arrow.string())
    raw = [sample_id.encode(errors="surrogateescape") for sample_id in ids[rows]]
    return arrow.array(raw, arrow.binary())


def _unicode(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _packed(array: NDArray[np.float32]) -> bytes:
    shape = json.dumps(array.shape).encode()
    return shape + b"\n" + base64.b64encode(np.ascontiguousarray(array).data)


def _unpacked(packed: bytes) -> NDArray[np.float32]:
    shape, _, values = packed.partition(b"\n")
    flat = np.frombuffer(base64.b64decode(values, validate=True), np.float32)
    return flat.reshape(json.loads(shape))


def read_table(path: Path) -> dict[str, NDArray[Any] | None]:
    """Read the arrays of a Parquet file: an export, or one with a column of lists and of labels.

    Labels that are texts become numbers of `label_names`.
    """
    file = _open(path)
    names = file.schema_arrow.names
    arrays: dict[str, NDArray[Any] | None] = dict.fromkeys(names)
    if column := next((name for name in _FEATURES if name in names), None):
        arrays["features"] = _vectors(file, path, column)
    if label := next((name for name in _LABELS if name in names), None):
        arrays |= _labels(file, label)
    metadata = {key.decode(): value for key, value in (file.metadata.metadata or {}).items()}
    if KEY not in metadata:
        return arrays
    arrays[KEY] = np.array(metadata[KEY].decode())
    arrays[_NAMES] = np.array(json.loads(metadata.get(_NAMES, b"[]")), np.str_)
    texts = {key: _unpacked(v) for key, v in metadata.items() if key.startswith(TEXT_KEY)}
    ids = {"sample_ids": _texts(file, ID)} if ID in names else {}
    return {**arrays, **texts, **ids}


def _open(path: Path) -> Any:
    """Open a file, and refuse it if it declares more than a file of its size can hold."""
    size = path.stat().st_size
    limits = dict.fromkeys(("thrift_string_size_limit", "thrift_container_size_limit"), size)
    open_file = functools.partial(_arrow(path).parquet.ParquetFile, path, **limits)
    file = open_file()
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    declared = sum(group.total_byte_size for group in groups)
    if declared > max(_LEAST, _TIMES * size) or any(group.num_rows < 0 for group in groups):
        raise ValueError(f"it would unpack to {declared:,} bytes")
    # As a dictionary, a text that many rows repeat is in memory once.
    texts = [field.name for field in file.schema_arrow if _is_text(field.type)]
    return open_file(read_dictionary=texts) if texts else file


def _vectors(file: Any, path: Path, column: str) -> NDArray[np.floating]:
    """Read a column of lists of one length into an array (N, D), a batch at a time."""
    count, rows, start = file.metadata.num_rows, None, 0
    for batch in file.iter_batches(_ROWS, columns=[column], use_threads=False):
        block = _block(batch.column(0), column)
        if rows is None:
            needed = count * block.shape[1] * block.itemsize
            if needed > max(_LEAST, _TIMES * path.stat().st_size):
                raise ValueError(f"it would unpack to {needed:,} bytes")
            rows = np.empty((count, block.shape[1]), block.dtype)
        if block.shape[1] != rows.shape[1]:
            raise ValueError(f"its lists '{column}' have {rows.shape[1]} and {block.shape[1]} dims")
        rows[start : start + len(block)] = block
        start += len(block)
    if rows is None or start != count:
        raise ValueError(f"it has {start:,} of {count:,} rows")
    return rows


def _block(lists: Any, column: str) -> NDArray[np.floating]:
    if not hasattr(lists, "flatten") or not hasattr(lists.type, "value_type"):
        raise TypeError(f"its column '{column}' is {lists.type}, must be lists of numbers")
    lengths = np.unique(lists.value_lengths().to_numpy(zero_copy_only=False))
    if lists.null_count or len(lengths) != 1:
        raise ValueError(f"its lists '{column}' are missing in rows, or of several lengths")
    values = lists.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(lists), -1)


def _labels(file: Any, column: str) -> dict[str, NDArray[Any]]:
    """Read labels (N,); labels that are texts become numbers of `label_names`."""
    labels = file.read([column], use_threads=False).column(0).combine_chunks()
    if not _is_text(labels.type):
        return {"labels": labels.fill_null(-1).to_numpy(zero_copy_only=False)}
    encoded = labels if hasattr(labels, "dictionary") else labels.dictionary_encode()
    names = np.array(encoded.dictionary.to_pylist() or [""], np.str_)
    order, indices = np.unique(names, return_inverse=True)
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return {"labels": np.where(numbers < 0, -1, indices[numbers]), "label_names": order}


def _is_text(kind: Any) -> bool:
    kind = kind.value_type if hasattr(kind, "index_type") else kind  # of a dictionary
    return str(kind) in ("string", "large_string", "string_view", "binary")


def _texts(file: Any, column: str) -> NDArray[Any]:
    """Read a column of texts (N,); bytes are decoded as names of files."""
    texts = []
    for batch in file.iter_batches(_ROWS, columns=[column], use_threads=False):
        column_part = batch.column(0)
        if not hasattr(column_part, "dictionary") or column_part.null_count:
            raise TypeError(f"its column '{column}' is {column_part.type}, must be texts")
        values = [
            value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
            for value in column_part.dictionary.to_pylist()
        ]
        texts += [values[i] for i in column_part.indices.to_pylist()]
    return np.array(texts, object)
