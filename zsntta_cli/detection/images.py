"""Images as a program has them: paths, PIL images, arrays, tensors. torch is not imported here."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.errors import SettingsError

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder

_BATCH, _WORKERS = 64, 4  # images at a time, threads that read them
_MODES = (1, 3, 4)  # channels: grey, RGB, RGBA
_WANTED = (
    "must be a path, a PIL image, uint8 pixels (H, W, 3), or a tensor of the encoder's input "
    "(3, S, S)"
)


def as_list(images: Any) -> list[Any]:
    """One image, or many, as a list: a path, a PIL image, and an array of three dims are one."""
    if isinstance(images, str | Path | Image.Image):
        return [images]
    if hasattr(images, "ndim"):
        if images.ndim not in (2, 3, 4):
            raise SettingsError(f"an image has the shape {tuple(images.shape)}, {_WANTED}.")
        return list(images) if images.ndim == 4 else [images]
    if not isinstance(images, Iterable):
        raise SettingsError(f"an image is of the type {type(images).__name__}, {_WANTED}.")
    return list(images)


def sources_of(images: Sequence[Any]) -> list[str | None]:
    """The paths of images; None of one that has none."""
    return [str(one) if isinstance(one, str | Path) else None for one in images]


def encoded(encoder: "Encoder", images: Sequence[Any]) -> NDArray[np.float32]:
    """Raw image features (N, D), as the extraction makes them.

    Raises:
        DatasetError: a file that cannot be read as an image.
        SettingsError: something that is no image.
    """
    parts = [np.empty((0, encoder.embed_dim), np.float32)]
    for start in range(0, len(images), _BATCH):
        some = images[start : start + _BATCH]
        inputs = [_is_input(one) for one in some]
        if any(inputs) and not all(inputs):
            raise SettingsError("images and tensors of the encoder's input are mixed.")
        parts += [encoder.encode_images(_stacked(encoder, some))] if all(inputs) else []
        parts += [] if all(inputs) else [encoder.encode_pixels(p) for p in _pixels(encoder, some)]
    return np.concatenate(parts)


def _is_input(image: Any) -> bool:
    """Whether it is a tensor of floats: what the encoder's own preprocessing gives."""
    return hasattr(image, "is_floating_point") and bool(image.is_floating_point())


def _stacked(encoder: "Encoder", tensors: Sequence[Any]) -> Any:
    import torch

    shape = (3, encoder.image_size, encoder.image_size)
    for one in tensors:
        if tuple(one.shape) != shape:
            raise SettingsError(
                f"a tensor of floats has the shape {tuple(one.shape)}, the encoder's input {shape}."
            )
    return torch.stack(list(tensors))


def _pixels(encoder: "Encoder", images: Sequence[Any]) -> Iterator[NDArray[np.uint8]]:
    """The pixels (B, H, W, 3) that the encoder is to see, read by threads."""
    from zsntta_cli.encoders.batches import load_batches

    names = [name or f"number {i}" for i, name in enumerate(sources_of(images))]
    kept = ImageSet(
        "images", lambda i: opened(images[i]), np.full(len(images), -1, np.int32), names
    )
    for pixels, _ in load_batches(kept, [range(len(images))], encoder.resize, _WORKERS, False):
        yield pixels


def opened(image: Any) -> Image.Image:
    """An image as PIL has it, in RGB.

    Raises:
        OSError: a file that is missing or no image.
        SettingsError: something that is no image.
    """
    if isinstance(image, str | Path):
        with Image.open(image) as file:
            return file.convert("RGB")
    if isinstance(image, Image.Image):
        return image.convert("RGB")
    return Image.fromarray(_array(image)).convert("RGB")


def _array(image: Any) -> NDArray[np.uint8]:
    """Pixels (H, W, 3), or with fewer or more channels; a tensor may have the channels first."""
    is_tensor = hasattr(image, "detach")
    array = image.detach().cpu().numpy() if is_tensor else image
    if not isinstance(array, np.ndarray):
        raise SettingsError(f"an image is of the type {type(image).__name__}, {_WANTED}.")
    if is_tensor and array.ndim == 3 and array.shape[0] in _MODES:
        array = array.transpose(1, 2, 0)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    fits = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in _MODES)
    if array.dtype != np.uint8 or not fits or 0 in array.shape:
        raise SettingsError(f"an image is {array.dtype} {array.shape}, {_WANTED}.")
    return np.ascontiguousarray(array)
