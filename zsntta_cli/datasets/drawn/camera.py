"""What happens to a drawn picture on its way to pixels: styles, blur, noise, bytes."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from zsntta_cli.datasets.drawn.outlines import SIZE
from zsntta_cli.datasets.drawn.textures import Pixels

Value = TypeVar("Value", np.uint8, np.floating)

_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)


def _faded(picture: Pixels, strength: float) -> Pixels:
    haze = np.float32(0.85)
    return haze + np.float32(1 - 0.75 * strength) * (picture - haze)


def _colourless(picture: Pixels) -> Pixels:
    return np.broadcast_to(_interleaved(picture) @ _LUMA, picture.shape)


def _soften(picture: Pixels, radius: float, factor: int) -> NDArray[np.float32]:
    """Blur with PIL, and coarsen to squares of `factor` pixels if it is above 1."""
    image = Image.fromarray(_interleaved(_to_bytes(picture)))
    if radius > 0.2:
        image = image.filter(ImageFilter.GaussianBlur(radius))
    if factor > 1:
        image = image.reduce(factor).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
    return np.asarray(image, dtype=np.float32) / np.float32(255)


def _to_bytes(values: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Round values in [0, 1] to bytes."""
    scaled = np.clip(values, 0, 1)
    scaled *= np.float32(255)
    scaled += np.float32(0.5)
    return scaled.astype(np.uint8)


def _interleaved(planes: NDArray[Value]) -> NDArray[Value]:
    """Pixels (SIZE, SIZE, 3) of planes: in three copies, thrice as fast as in one."""
    pixels = np.empty((SIZE, SIZE, 3), planes.dtype)
    for channel, plane in enumerate(planes):
        pixels[..., channel] = plane
    return pixels


def photograph(
    picture: Pixels,
    style: str,
    strength: float,
    blur: float,
    noise: float,
    gen: np.random.Generator,
) -> NDArray[np.uint8]:
    """Apply the style at a strength in [0, 1], then blur and noise, and round to bytes."""
    factor = 1
    match style:
        case "dark":
            picture = picture * np.float32(0.75 - 0.55 * strength)
        case "faded":
            picture = _faded(picture, strength)
        case "colourless":
            picture = _colourless(picture)
        case "blurry":
            blur += 0.5 + 1.3 * strength
        case "grainy":
            noise += 0.04 + 0.16 * strength
        case "pixelated":
            factor = 2 if strength < 0.4 else 4
    is_sharp = blur <= 0.2 and factor == 1
    pixels = _interleaved(picture) if is_sharp else _soften(picture, blur, factor)
    grain = gen.standard_normal((SIZE, SIZE, 3), dtype=np.float32)
    grain *= np.float32(noise)
    return _to_bytes(pixels + grain)
