"""Files of arrays: .npz, .npy, .pt and .safetensors.

Nothing is ever unpickled: a file is data, not a program.
"""

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import StoreError, first_line

_BARE = ""  # the key of an array whose file gives it none

Content = Mapping[str, NDArray[Any]]  # by key


def read(path: Path) -> Content:
    """Read the arrays of a file.

    Raises:
        StoreError: there is no such file, its type is not known, it is broken, or has objects.
    """
    reader = _READERS.get(path.suffix.lower())
    if not path.is_file() or reader is None:
        raise StoreError(
            f"{path} is no file that can be read: must be one of {', '.join(_READERS)}."
        )
    try:
        return reader(path)
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
    for key in (*keys, _BARE):
        if key in content:
            return content[key]
    held = ", ".join(f"'{key}'" for key in content) or "nothing"
    wanted = " or ".join(f"'{key}'" for key in keys)
    raise StoreError(f"{path} holds {held}, must hold {wanted}: save it under that name.")


def _npz(path: Path) -> Content:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as loaded:
        content = dict(loaded)
    for key, array in content.items():  # NumPy gives the bytes of a member that is no array
        if not isinstance(array, np.ndarray):
            raise TypeError(f"'{key}' in it is no array")
    return content


def _torch(path: Path) -> Content:
    import torch

    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # torch's message advises to unpickle all the same
        raise ValueError("damaged, or with objects other than tensors and strings") from error
    if isinstance(loaded, torch.Tensor):
        loaded = {_BARE: loaded}
    if not isinstance(loaded, dict):
        raise TypeError(f"it holds a {type(loaded).__name__}, must be a tensor or a dict")
    return {str(key): _array(value) for key, value in loaded.items()}


def _safetensors(path: Path) -> Content:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return {key: _array(file.get_tensor(key)) for key in file.keys()}  # noqa: SIM118


def _array(value: Any) -> NDArray[Any]:
    import torch

    if not isinstance(value, torch.Tensor):
        return np.array(value)
    # With strides of 0, a small file can claim a tensor of any shape, and a copy fills the memory.
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise ValueError("a tensor in it repeats itself: save its .clone()")
    # NumPy has no bfloat16.
    array: NDArray[Any] = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return array


_READERS: dict[str, Callable[[Path], Content]] = {
    ".npz": _npz, ".npy": lambda path: {_BARE: np.lib.format.open_memmap(path, mode="r")},
    ".pt": _torch, ".pth": _torch, ".safetensors": _safetensors,
}  # fmt: skip
