"""Exports: a feature file becomes a file that other tools read, block by block.

`imports` reads all of these forms and makes equal features of them.
"""

import json
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import hdf5, parquet
from zsntta_cli.cache.description import KEY, Description, describe
from zsntta_cli.cache.features import WORDS, FeatureSet, Text, names_a_folder
from zsntta_cli.cache.folder import find
from zsntta_cli.errors import StoreError, UnknownName, short
from zsntta_cli.files import check_target, whole_file, writing
from zsntta_cli.settings.prompts import cached_prompt

_BLOCK = 8000  # rows in memory
_ALIGNED = 8  # bytes: safetensors' arrays begin at a multiple of it


@dataclass(frozen=True)
class ExportPlan:
    """The set to export, the form, and the file to write it to."""

    name: str
    form: str
    output: Path | None = None  # None: by the set's name, in the current folder
    encoder: str | None = None  # a folder's name; None: the only one that has the set
    prompts: Sequence[str] = ()  # whose text features are exported; empty: all
    without_ids: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        if self.form not in WRITERS:
            raise UnknownName("form", self.form, [*WRITERS])

    @property
    def target(self) -> Path:
        """The file that is written."""
        return self.output or Path(f"{self.name}.{self.form}")


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    path: Path
    images: int
    dim: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Outgoing:
    """The content of a feature file that is exported."""

    features: FeatureSet  # without rows
    sample_ids: Sequence[str]  # empty if they are left out
    texts: Sequence[Text]
    description: Description

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
        return hdf5.row_blocks(self.features, _BLOCK)

    def text_arrays(self) -> dict[str, NDArray[np.float32]]:
        """Text features (C, D) by their keys."""
        entries = self.description.texts
        return {e.key: text.features for e, text in zip(entries, self.texts, strict=True)}

    def names(self) -> dict[str, Sequence[str]]:
        """Class names and sample ids by their keys, without lists that are empty."""
        lists = {"class_names": self.features.class_names, "sample_ids": self.sample_ids}
        return {key: texts for key, texts in lists.items() if texts}


def export_features(plan: ExportPlan, root: Path) -> Exported:
    """Write the features of a set in another form, whole or not at all.

    Raises:
        MissingFeatures: the set is not cached.
        StoreError: the target exists already, the set has no images, or the file is broken or
            cannot be written.
    """
    path, target = _feature_file(plan, root), plan.target
    if not check_target(target) and not plan.overwrite and _has_content(target):
        raise StoreError(f"{target} is there already", remedy="overwrite-output")
    features, ids = hdf5.read_without_rows(path)
    if features.kind == WORDS or not len(features):
        raise StoreError(f"'{plan.name}' has no images, so there is nothing to export.")
    texts = _chosen(features, plan.prompts)
    sample_ids = () if plan.without_ids else ids
    with whole_file(target) as temporary:
        WRITERS[plan.form](
            temporary, Outgoing(features, sample_ids, texts, describe(features, texts))
        )
    return Exported(target, len(features), features.dim, tuple(_notes(sample_ids)))


def _feature_file(plan: ExportPlan, root: Path) -> Path:
    paths = find(root, [plan.name], plan.encoder)
    if len(paths) > 1:
        encoders = ", ".join(path.parent.name for path in paths)
        raise StoreError(f"'{plan.name}' is cached of {encoders}: choose one with --encoder NAME.")
    return paths[0]


def _has_content(file: Path) -> bool:
    with writing(file):
        return file.exists() and file.stat().st_size > 0


def _chosen(features: FeatureSet, prompts: Sequence[str]) -> list[Text]:
    """Choose text features by prompts, which are names or templates in full."""
    by_template = {text.template: text for text in features.texts()}
    wanted = [prompt if prompt in by_template else cached_prompt(prompt) for prompt in prompts]
    for prompt in wanted:
        if prompt not in by_template:
            held = ", ".join(f"'{template}'" for template in by_template) or "no template"
            raise StoreError(
                f"{features.path} has no text features of '{short(prompt)}', it has {held}."
            )
    return [by_template[prompt] for prompt in dict.fromkeys(wanted)] or [*by_template.values()]


def _notes(sample_ids: Sequence[str]) -> Iterator[str]:
    if leading := next((name for name in sample_ids if names_a_folder(name)), None):
        yield (
            f"sample ids have folders of this machine ('{short(leading)}'): --without-ids leaves "
            f"them out"
        )


def write_npz(path: Path, outgoing: Outgoing) -> None:
    """Write an archive of arrays, as `numpy.savez` does."""
    arrays = {
        KEY: np.array(outgoing.description.to_json()),
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
            descr = np.lib.format.dtype_to_descr(outgoing.dtype)
            header = {"descr": descr, "fortran_order": False, "shape": outgoing.shape}
            np.lib.format.write_array_header_1_0(file, header)
            for block in outgoing.blocks():
                file.write(np.ascontiguousarray(block).data)


def write_parquet(path: Path, outgoing: Outgoing) -> None:
    """Write a table with a row for each image."""
    features = outgoing.features
    listed = parquet.Listed(outgoing.sample_ids, features.labels, features.class_names)
    metadata = parquet.table_metadata(
        outgoing.description.to_json(), features.class_names, outgoing.text_arrays()
    )
    parquet.write_table(path, listed, outgoing.blocks(), metadata)


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
        {**shapes, "image_features": rows}, {KEY: outgoing.description.to_json(), **lists}
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


# By the form's name, which is the ending of its files.
WRITERS: dict[str, Callable[[Path, Outgoing], None]] = {
    "npz": write_npz, "parquet": write_parquet, "safetensors": write_safetensors,
}  # fmt: skip
FORMS = {f".{form}": form for form in WRITERS}
