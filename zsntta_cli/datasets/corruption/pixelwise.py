"""Corruptions that take each pixel by itself, and those of storing a picture.

Pixels (H, W, 3) are float32 from 0 to 1; what leaves that range is cut off at the end.
"""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.float32]
_BAND = 256  # rows at a time, where memory for all of a large image would be gigabytes


def to_bytes(pixels: Pixels) -> NDArray[np.uint8]:
    """Pixels cut off at 0 and 1 as bytes, rounded down as the published sets are."""
    scaled = np.clip(pixels, 0, 1)
    scaled *= np.float32(255)
    scaled += np.float32(1 / 4096)  # what is a whole number but for float32 stays that number
    return scaled.astype(np.uint8)


def to_pixels(values: NDArray[np.uint8]) -> Pixels:
    """Bytes as pixels from 0 to 1."""
    pixels = values.astype(np.float32)
    pixels /= np.float32(255)
    return pixels


def gaussian_noise(pixels: Pixels, generator: np.random.Generator, deviation: float) -> Pixels:
    """Normal noise of a standard deviation."""
    noise = generator.standard_normal(pixels.shape, np.float32)
    noise *= np.float32(deviation)
    noise += pixels
    return noise


def shot_noise(pixels: Pixels, generator: np.random.Generator, photons: float) -> Pixels:
    """Poisson noise, of so many photons where a pixel is white."""
    noisy = np.empty_like(pixels)
    for start in range(0, len(pixels), _BAND):
        rows = slice(start, start + _BAND)
        noisy[rows] = generator.poisson(pixels[rows].astype(np.float64) * photons) / photons
    return noisy


def impulse_noise(pixels: Pixels, generator: np.random.Generator, share: float) -> Pixels:
    """Salt and pepper: a share of all values is 0 or 1, either as likely."""
    drawn = generator.random(pixels.shape, np.float32)
    noisy = pixels.copy()
    noisy[drawn < share / 2] = 0
    noisy[drawn > 1 - share / 2] = 1
    return noisy


def brightness(pixels: Pixels, _: np.random.Generator, added: float) -> Pixels:
    """More of the value V of HSV; hue and saturation stay."""
    value = pixels.max(axis=2, keepdims=True)
    brighter = np.minimum(value + np.float32(added), 1)
    scale = np.divide(brighter, value, out=np.zeros_like(value), where=value > 0)
    return np.where(value > 0, pixels * scale, brighter)  # black has no hue: it becomes grey


def contrast(pixels: Pixels, _: np.random.Generator, share: float) -> Pixels:
    """Each channel nearer to its mean over the image."""
    mean = pixels.mean(axis=(0, 1), keepdims=True, dtype=np.float64).astype(np.float32)
    return (pixels - mean) * np.float32(share) + mean


def pixelate(pixels: Pixels, _: np.random.Generator, share: float) -> Pixels:
    """Fewer pixels, each a box."""
    image = _image(pixels)
    width, height = image.size
    size = max(1, int(width * share)), max(1, int(height * share))
    box = Image.Resampling.BOX
    return to_pixels(np.asarray(image.resize(size, box).resize((width, height), box)))


def jpeg_compression(pixels: Pixels, _: np.random.Generator, quality: float) -> Pixels:
    """A JPEG of a low quality."""
    content = io.BytesIO()
    _image(pixels).save(content, "JPEG", quality=int(quality))
    with Image.open(content) as image:
        return to_pixels(np.asarray(image))


def _image(pixels: Pixels) -> Image.Image:
    return Image.fromarray(to_bytes(pixels))
