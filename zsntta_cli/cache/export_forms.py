"""The forms that features are exported in: one function for each, which writes block by block."""

import json
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import hdf5, parquet
from zsntta_cli.cache.features import FeatureSet, Text
from zsntta_cli.cache.manifest import FILE, KEY, Manifest
from zsntta_cli.files import scratch_file

BLOCK = 8000  # rows in memory
PART = 1_000_000  # rows of one of clip-retrieval's files: a whole number of blocks
_ALIGNED = 8  # bytes: safetensors' arrays begin at a multiple of it


@dataclass(frozen=True)
class Outgoing:
    """The content of a feature file that is exported."""

    features: FeatureSet  # without rows
    sample_ids: Sequence[str]  # empty if they are left out
    texts: Sequence[Text]
    manifest: Manifest

    @property
    def shape(self) -> tuple[int, int]:
        """The number of images and the dimensions of their features, (N, D)."""
        return len(self.features), self.features.dim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the image features."""
        return self.features.image_features.dtype

    def blocks(self) -> Iterator[NDArray[np.floating]]:
        """Give the image features in order, checked against their digest."""
        return hdf5.row_blocks(self.features, BLOCK)

    def text_arrays(self) -> dict[str, NDArray[np.float32]]:
        """Text features (C, D) by their keys."""
        entries = self.manifest.texts
        return {e.key: text.features for e, text in zip(entries, self.texts, strict=True)}

    def names(self) -> dict[str, Sequence[str]]:
        """Class names and sample ids by their keys, without lists that are empty."""
        lists = {"class_names": self.features.class_names, "sample_ids": self.sample_ids}
        return {key: texts for key, texts in lists.items() if texts}

    @property
    def listed(self) -> parquet.Listed:
        """The list of images."""
        features = self.features
        return parquet.Listed(self.sample_ids, features.labels, features.class_names)


def _write_array(
    file: IO[bytes], shape: tuple[int, int], dtype: Any, blocks: Iterator[NDArray[Any]]
) -> None:
    """Write blocks of rows as one array in NumPy's format."""
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for block in blocks:
        file.write(np.ascontiguousarray(block).data)


def write_npz(path: Path, outgoing: Outgoing) -> None:
    """Write an archive of arrays, as `numpy.savez` does."""
    arrays = {
        KEY: np.array(outgoing.manifest.to_json()),
        "labels": outgoing.features.labels,
        **{key: np.array(texts, np.str_) for key, texts in outgoing.names().items()},
        **outgoing.text_arrays(),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for key, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
        member = zipfile.ZipInfo("image_features.npy")
        with archive.open(member, "w", force_zip64=True) as file:
            _write_array(file, outgoing.shape, outgoing.dtype, outgoing.blocks())


def write_npy(folder: Path, outgoing: Outgoing) -> None:
    """Write a folder with an array or a list in each file."""
    with (folder / "image_features.npy").open("wb") as file:
        _write_array(file, outgoing.shape, outgoing.dtype, outgoing.blocks())
    np.save(folder / "labels.npy", outgoing.features.labels)
    for key, texts in outgoing.names().items():
        (folder / f"{key}.json").write_text(json.dumps([*texts], indent=0))
    _write_rest(folder, outgoing)


def _write_rest(folder: Path, outgoing: Outgoing) -> None:
    """Write the class text features, and the manifest, which lists all other files."""
    for key, array in outgoing.text_arrays().items():
        np.save(folder / f"{key}.npy", array)
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    manifest = replace(outgoing.manifest, files=tuple(files))
    (folder / FILE).write_text(manifest.to_json())


def write_parquet(path: Path, outgoing: Outgoing) -> None:
    """Write a table with a row for each image."""
    names = outgoing.features.class_names
    metadata = parquet.table_metadata(outgoing.manifest.to_json(), names, outgoing.text_arrays())
    parquet.write_table(path, outgoing.listed, outgoing.blocks(), metadata)


_DTYPES = {"float16": "F16", "float32": "F32", "int32": "I32", "uint8": "U8"}


def write_safetensors(path: Path, outgoing: Outgoing) -> None:
    """Write tensors behind a header in JSON, with the sample ids as a tensor of JSON's bytes.

    The header has a largest size, which millions of sample ids would exceed.
    """
    lists = {key: json.dumps([*texts]) for key, texts in outgoing.names().items()}
    ids = lists.pop("sample_ids", "")
    arrays: dict[str, NDArray[Any]] = {"labels": outgoing.features.labels, **outgoing.text_arrays()}
    arrays |= {"sample_ids": np.frombuffer(ids.encode(), np.uint8)} if ids else {}
    rows = outgoing.shape, outgoing.dtype
    shapes = {key: (array.shape, array.dtype) for key, array in arrays.items()}
    head = _safetensors_head(
        {**shapes, "image_features": rows}, {KEY: outgoing.manifest.to_json(), **lists}
    )
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).data)
        for block in outgoing.blocks():
            file.write(np.ascontiguousarray(block).data)


def _safetensors_head(
    shapes: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]], metadata: Mapping[str, str]
) -> bytes:
    head: dict[str, Any] = {"__metadata__": metadata}
    start = 0
    for key, (shape, dtype) in shapes.items():
        end = start + int(np.prod(shape)) * dtype.itemsize
        head[key] = {"dtype": _DTYPES[dtype.name], "shape": shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps(head).encode()
    return text + b" " * (-len(text) % _ALIGNED)


def write_clip_retrieval(folder: Path, outgoing: Outgoing) -> None:
    """Write the folders of clip-retrieval: parts of at most a million rows, each with a list.

    Its folder text_emb is for captions of images, so class text features lie beside the folders.
    """
    blocks, (count, dim) = outgoing.blocks(), outgoing.shape
    starts = range(0, count, PART)
    for name in ("img_emb", "metadata"):
        (folder / name).mkdir()
    for i, start in enumerate(starts):
        number, rows = f"{i:0{len(str(len(starts)))}d}", slice(start, min(start + PART, count))
        shape = (rows.stop - rows.start, dim)
        with (folder / "img_emb" / f"img_emb_{number}.npy").open("wb") as file:
            _write_array(file, shape, outgoing.dtype, islice(blocks, -(-shape[0] // BLOCK)))
        parquet.write_list(
            folder / "metadata" / f"metadata_{number}.parquet", outgoing.listed, rows
        )
    np.save(folder / "labels.npy", outgoing.features.labels)
    names = outgoing.features.class_names
    (folder / "class_names.json").write_text(json.dumps([*names], indent=0))
    _write_rest(folder, outgoing)


def write_torch(path: Path, outgoing: Outgoing) -> None:
    """Write a dict of tensors, lists and a text, which `torch.load` reads with weights_only."""
    import torch

    # torch writes a tensor as a whole: it is mapped from a file, so that it need not fit in memory.
    with scratch_file(path.parent) as rows:
        with rows.open("wb") as file:
            for block in outgoing.blocks():
                file.write(np.ascontiguousarray(block).data)
        mapped = np.memmap(rows, outgoing.dtype, "c", shape=outgoing.shape)
        arrays = {"image_features": mapped, "labels": outgoing.features.labels}
        tensors = {k: torch.from_numpy(v) for k, v in {**arrays, **outgoing.text_arrays()}.items()}
        lists = {key: [*texts] for key, texts in outgoing.names().items()}
        with path.open("wb") as file:  # given a path, torch would name the records after it
            torch.save({KEY: outgoing.manifest.to_json(), **lists, **tensors}, file)


WRITERS: dict[str, Callable[[Path, Outgoing], None]] = {
    "npz": write_npz,
    "npy": write_npy,
    "parquet": write_parquet,
    "safetensors": write_safetensors,
    "clip-retrieval": write_clip_retrieval,
    "torch": write_torch,
}
FOLDERS = ("npy", "clip-retrieval")  # forms of several files
SUFFIXES = {  # of the default name
    "npz": ".npz", "npy": "-npy", "parquet": ".parquet", "safetensors": ".safetensors",
    "clip-retrieval": "-clip-retrieval", "torch": ".pt",
}  # fmt: skip
FORMS = {".npz": "npz", ".parquet": "parquet", ".safetensors": "safetensors", ".pt": "torch"}
