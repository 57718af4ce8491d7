"""Readers of arrays made elsewhere. Nothing is ever unpickled: a file is data, not a program.

clip-retrieval (github.com/rom1504/clip-retrieval) writes features as img_emb/img_emb_0.npy,
img_emb_1.npy, … with metadata beside them.
"""

import json
import pickle
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import read_input

BARE = ""  # the key of an array that has none
FEATURES, LABELS, NAMES, TEXT = (
    ("features", "image_features"), ("labels",), ("class_names",), ("text_features",)
)  # fmt: skip
_LEAST, _TIMES = 2**26, 16  # bytes that any archive may unpack to, and times its size
_LARGEST_TEXT = 2**28  # bytes
_KNOWN = {*FEATURES, *LABELS, *NAMES, *TEXT}

Content = Mapping[str, NDArray[Any] | None]  # by key; None: not looked at, its key is unknown here


def read(path: Path) -> Content:
    """The arrays of a file.

    Raises:
        StoreError: no such file, of no known type, broken, or with objects in it.
    """
    reader = _READERS.get(path.suffix.lower())
    if not path.is_file() or reader is None:
        raise StoreError(
            f"{path} is no file that can be read: must be one of {', '.join(_READERS)}, or a "
            f"folder with clip-retrieval's img_emb_0.npy, img_emb_1.npy, …"
        )
    try:
        return reader(path)
    except Exception as error:  # damaged files make zipfile, NumPy and torch raise nearly anything
        reason = first_line(error).rstrip(".")
        raise StoreError(
            f"cannot read {path} ({reason}): save it again as plain arrays of numbers or strings."
        ) from error


def pick(content: Content, keys: tuple[str, ...], path: Path) -> NDArray[Any]:
    """The array under one of some keys, or the only one if it has none.

    Raises:
        StoreError: there is none.
    """
    for key in (*keys, BARE):
        array = content.get(key)
        if array is not None:
            return array
    held = ", ".join(f"'{key}'" for key in content) or "nothing"
    wanted = " or ".join(f"'{key}'" for key in keys)
    raise StoreError(f"{path} holds {held}, must hold {wanted}: save it under that name.")


def read_parts(folder: Path) -> list[NDArray[Any]]:
    """The features of a folder as clip-retrieval writes it, a part (n, D) each, in numeric order.

    Raises:
        StoreError: no parts, one missing, or one broken.
    """
    parts: dict[int, Path] = {}
    for path in (*folder.glob("img_emb/*.npy"), *folder.glob("*.npy")):
        number = re.fullmatch(r"img_emb_(\d{1,9})", path.stem)
        if number:
            parts[int(number[1])] = path
    missing = next((i for i in range(len(parts) + 1) if i not in parts), 0)
    if missing < len(parts) or not parts:
        raise StoreError(
            f"no img_emb_{missing}.npy in {folder} or {folder / 'img_emb'}: a folder must hold "
            f"clip-retrieval's parts img_emb_0.npy, img_emb_1.npy, … without a gap."
        )
    return [pick(read(parts[i]), FEATURES, parts[i]) for i in sorted(parts)]


def _npy(path: Path) -> Content:
    return {BARE: np.lib.format.open_memmap(path, mode="r")}


def _npz(path: Path) -> Content:
    _check_unpacked(path)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as loaded:
        return {key: _member(loaded, key) if key in _KNOWN else None for key in loaded.files}


def _check_unpacked(path: Path) -> None:
    """Refuse an archive that unpacks to far more than features ever do."""
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(_LEAST, _TIMES * path.stat().st_size):
        raise ValueError(f"it would unpack to {unpacked:,} bytes")


def _member(archive: Mapping[str, Any], key: str) -> NDArray[Any]:
    array = archive[key]
    if not isinstance(array, np.ndarray):  # NumPy gives the bytes of what is no array
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
    except pickle.UnpicklingError as error:  # torch's own words advise to unpickle all the same
        raise ValueError("damaged, or with objects other than tensors and strings") from error
    if isinstance(loaded, torch.Tensor):
        return {BARE: _array(loaded)}
    if not isinstance(loaded, dict):
        raise TypeError(f"it holds a {type(loaded).__name__}, must be a tensor or a dict")
    return {str(key): _array(v) if key in _KNOWN else None for key, v in loaded.items()}


def _array(value: Any) -> NDArray[Any]:
    import torch

    if not isinstance(value, torch.Tensor):
        return np.array(value)
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise ValueError("a tensor in it repeats itself: save its .clone()")
    if value.dtype == torch.bfloat16:
        value = value.float()
    array: NDArray[Any] = value.detach().numpy()
    return array


def _lines(path: Path) -> Content:
    lines = read_input(path, _LARGEST_TEXT).decode("utf-8-sig").rstrip().split("\n")
    return {BARE: np.array([line.strip() for line in lines])}


def _json(path: Path) -> Content:
    loaded = json.loads(read_input(path, _LARGEST_TEXT).decode("utf-8-sig"))
    if not isinstance(loaded, list):
        raise TypeError(f"it holds a {type(loaded).__name__}, must be a list")
    return {BARE: np.array(loaded)}


_READERS: dict[str, Callable[[Path], Content]] = {
    ".npz": _npz, ".npy": _npy, ".pt": _torch, ".pth": _torch, ".txt": _lines, ".json": _json,
}  # fmt: skip
