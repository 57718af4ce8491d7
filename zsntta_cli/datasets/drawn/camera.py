"""What happens to a drawn picture on its way to pixels: styles, blur, noise, bytes."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from zsntta_cli.datasets.drawn.outlines import SIZE
from zsntta_cli.datasets.drawn.textures import Pixels

_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)


def _faded(picture: Pixels, strength: float) -> Pixels:
    haze = np.float32(0.85)
    return haze + np.float32(1 - 0.75 * strength) * (picture - haze)


def _colourless(picture: Pixels) -> Pixels:
    return np.repeat((picture @ _LUMA)[..., None], 3, axis=2)


def _soften(picture: Pixels, radius: float, factor: int) -> Pixels:
    """Blur with PIL, and coarsen to squares of `factor` pixels if it is above 1."""
    image = Image.fromarray(to_bytes(picture))
    if radius > 0.2:
        image = image.filter(ImageFilter.GaussianBlur(radius))
    if factor > 1:
        image = image.reduce(factor).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
    return np.asarray(image, dtype=np.float32) / np.float32(255)


def to_bytes(picture: Pixels) -> NDArray[np.uint8]:
    """Round a picture in [0, 1] to bytes."""
    return (np.clip(picture, 0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8)


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
    if blur > 0.2 or factor > 1:
        picture = _soften(picture, blur, factor)
    grain = gen.standard_normal((SIZE, SIZE, 3), dtype=np.float32)
    return to_bytes(picture + np.float32(noise) * grain)
