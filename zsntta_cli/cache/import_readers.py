"""Readers of arrays made elsewhere. Nothing is ever unpickled: a file is data, not a program.

clip-retrieval (github.com/rom1504/clip-retrieval) writes features as img_emb/img_emb_0.npy,
img_emb_1.npy, … with metadata beside them. A file of `cache export` has a description
(description.py), and a feature file is read as one.
"""

import json
import pickle
import re
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import hdf5, parquet
from zsntta_cli.cache.description import KEY, TEXT_KEY, describe
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import read_input

BARE = ""  # the key of an array whose file gives it none
FEATURES, LABELS, NAMES, TEXT = (
    ("features", "image_features"), ("labels", "targets", "label", "target"),
    ("class_names", "classes", "classnames"), ("text_features", "text_weights"),
)  # fmt: skip
# An archive may unpack to 64 MiB, or to 16 times its size if that is more.
_LEAST, _TIMES = 2**26, 16
_LARGEST_TEXT = 2**28  # bytes
_WITHIN_HDF5 = re.compile(r"(.+\.(?:h5|hdf5)):(.+)", re.IGNORECASE)  # f.h5:features
_OFFERED = 3  # data sets in an error
IDS, LABEL_NAMES = "sample_ids", "label_names"  # the latter: the texts that labels count
_KNOWN = {*FEATURES, *LABELS, *NAMES, *TEXT, IDS, KEY}
_MORE_TEXT = re.compile(rf"{TEXT_KEY}_\d{{1,6}}")

Content = Mapping[str, NDArray[Any] | None]  # by key; None: not read, as its key is unknown here


def read(path: Path) -> Content:
    """Read the arrays of a file.

    Raises:
        StoreError: there is no such file, its type is not known, it is broken, or has objects.
    """
    if (within := _WITHIN_HDF5.fullmatch(str(path))) and not path.exists():
        return {BARE: _read_with(partial(hdf5.read_matrix, name=within[2]), Path(within[1]))}
    reader = _READERS.get(path.suffix.lower())
    if not path.is_file() or reader is None:
        raise StoreError(
            f"{path} is no file that can be read: must be one of {', '.join(_READERS)}, or a "
            f"folder with clip-retrieval's img_emb_0.npy, img_emb_1.npy, …."
        )
    return _read_with(reader, path)


def _read_with(reader: Callable[[Path], Any], path: Path) -> Any:
    try:
        return reader(path)
    except StoreError:
        raise
    except Exception as error:  # damaged files make zipfile, NumPy and torch raise nearly anything
        reason = first_line(error).rstrip(".")
        raise StoreError(
            f"cannot read {path} ({reason}): save it again as plain arrays of numbers or strings."
        ) from error


def pick(content: Content, keys: tuple[str, ...], path: Path) -> NDArray[Any]:
    """Pick the array under the first of `keys` that is there, or the only array if it has no key.

    Raises:
        StoreError: there is no such array.
    """
    for key in (*keys, BARE):
        array = content.get(key)
        if array is not None:
            return array
    held = ", ".join(f"'{key}'" for key in content) or "nothing"
    wanted = " or ".join(f"'{key}'" for key in keys)
    raise StoreError(f"{path} holds {held}, must hold {wanted}: save it under that name.")


def read_parts(folder: Path) -> list[NDArray[Any]]:
    """Read the features of a folder of clip-retrieval, in parts (n, D), in numeric order.

    Raises:
        StoreError: there are no parts, or a part is missing or broken.
    """
    parts = _numbered(folder)
    missing = next((i for i in range(len(parts) + 1) if i not in parts), 0)
    if missing < len(parts) or not parts:
        raise StoreError(
            f"no img_emb_{missing}.npy in {folder} or {folder / 'img_emb'}: a folder must hold "
            f"clip-retrieval's parts img_emb_0.npy, img_emb_1.npy, … without a gap; of any other "
            f"folder name the file with the features."
        )
    return [pick(read(parts[i]), FEATURES, parts[i]) for i in sorted(parts)]


def _numbered(folder: Path) -> dict[int, Path]:
    """Find the files img_emb_0.npy, … in a folder or its folder img_emb; newer ones have 00, 01."""
    numbered = dict[int, Path]()
    for path in (*folder.glob("img_emb/*.npy"), *folder.glob("*.npy")):
        match = re.fullmatch(r"img_emb_(\d{1,9})", path.stem)
        if match and numbered.setdefault(int(match[1]), path) != path:
            raise StoreError(
                f"{numbered[int(match[1])]} and {path} are the same part: leave one of them there."
            )
    return numbered


def _is_known(key: str) -> bool:
    """Whether an array is read, by its key."""
    return key in _KNOWN or _MORE_TEXT.fullmatch(key) is not None


def _npy(path: Path) -> Content:
    return {BARE: np.lib.format.open_memmap(path, mode="r")}


def _npz(path: Path) -> Content:
    _check_unpacked(path)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as loaded:
        return {key: _member(loaded, key) if _is_known(key) else None for key in loaded.files}


def _check_unpacked(path: Path) -> None:
    """Refuse an archive that unpacks to far more than features ever do."""
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(_LEAST, _TIMES * path.stat().st_size):
        raise ValueError(f"it would unpack to {unpacked:,} bytes")


def _member(archive: Mapping[str, Any], key: str) -> NDArray[Any]:
    array = archive[key]
    if not isinstance(array, np.ndarray):  # NumPy gives the bytes of a member that is no array
        raise TypeError(f"'{key}' in it is no array")
    return array


def _torch(path: Path) -> Content:
    # Before 2.6 weights_only was not safe for torch's older, tar-like files: CVE-2025-32434.
    if not zipfile.is_zipfile(path):
        raise ValueError("not a file as torch.save has written it since torch 1.6")
    _check_unpacked(path)
    import torch

    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # torch's message advises to unpickle all the same
        raise ValueError("damaged, or with objects other than tensors and strings") from error
    if isinstance(loaded, torch.Tensor):
        return {BARE: _array(loaded)}
    if not isinstance(loaded, dict):
        raise TypeError(f"it holds a {type(loaded).__name__}, must be a tensor or a dict")
    return {
        str(key): _array(value) if _is_known(str(key)) else None for key, value in loaded.items()
    }


def _array(value: Any) -> NDArray[Any]:
    import torch

    if not isinstance(value, torch.Tensor):
        return np.array(value)
    # With strides of 0, a small file can claim a tensor of any shape, and a copy fills the memory.
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise ValueError("a tensor in it repeats itself: save its .clone()")
    if value.dtype == torch.bfloat16:
        value = value.float()
    array: NDArray[Any] = value.detach().numpy()
    return array


def _safetensors(path: Path) -> Content:
    from safetensors import safe_open

    with safe_open(path, "np") as file:
        keys, metadata = list(file.keys()), file.metadata() or {}
        content = {key: _tensor(file, path, key) if _is_known(key) else None for key in keys}
    if (ids := content.get(IDS)) is not None:
        content[IDS] = _list_of_texts(json.loads(ids.tobytes()))
    for key in NAMES:
        if key in metadata:
            content[key] = np.array(json.loads(metadata[key]))
    return content | ({KEY: np.array(metadata[KEY])} if KEY in metadata else {})


def _tensor(file: Any, path: Path, key: str) -> NDArray[Any]:
    if file.get_slice(key).get_dtype() != "BF16":
        array: NDArray[Any] = file.get_tensor(key)
        return array
    from safetensors import safe_open  # NumPy has no bfloat16: torch widens it

    with safe_open(path, "pt") as tensors:
        return _array(tensors.get_tensor(key))


def _list_of_texts(values: Any) -> NDArray[Any]:
    """Make an array (N,) of a list of texts; each takes the memory of its own length.

    An array of NumPy's texts would give each of them the length of the longest.
    """
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("what should be a list of texts is none")
    return np.array(values, object)


def _text_of(path: Path) -> str:
    return read_input(path, _LARGEST_TEXT).decode("utf-8-sig")


def _lines(path: Path) -> Content:
    return {BARE: np.array([line.strip() for line in _text_of(path).rstrip().split("\n")])}


def _json(path: Path) -> Content:
    loaded = json.loads(_text_of(path))
    if not isinstance(loaded, list):
        raise TypeError(f"it holds a {type(loaded).__name__}, must be a list")
    return {BARE: np.array(loaded)}


def _hdf5(path: Path) -> Content:
    """Read a feature file; of another file say which data sets could be features."""
    if not hdf5.is_foreign(path):
        return _feature_file(path)
    names = hdf5.matrices(path)
    if not names:
        raise ValueError("no feature file, and without a data set of two dimensions")
    choices = " or ".join(f"{path}:{name}" for name in names[:_OFFERED])
    raise StoreError(f"{path} is no feature file: name a data set in it, as {choices}.")


def _feature_file(path: Path) -> Content:
    features = hdf5.read_features(path)
    texts = features.texts()
    description = describe(features, texts)
    return {
        KEY: np.array(description.to_json()), FEATURES[1]: features.image_features[:],
        LABELS[0]: features.labels, NAMES[0]: np.array(features.class_names, np.str_),
        IDS: np.array(hdf5.read_sample_ids(path), object),
        **{entry.key: text.features for entry, text in zip(description.texts, texts, strict=True)},
    }  # fmt: skip


_READERS: dict[str, Callable[[Path], Content]] = {
    ".npz": _npz, ".npy": _npy, ".pt": _torch, ".pth": _torch, ".parquet": parquet.read_table,
    ".safetensors": _safetensors, ".h5": _hdf5, ".hdf5": _hdf5, ".txt": _lines, ".json": _json,
}  # fmt: skip
