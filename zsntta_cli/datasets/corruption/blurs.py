"""Blurs: out of focus, through frosted glass, of a moving camera, of one that zooms."""

import math

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.corruption.pixelwise import Pixels, to_bytes, to_pixels

_DISK = 8  # radius of the grid that a disk is drawn on; larger disks have their own


def defocus_blur(pixels: Pixels, _: np.random.Generator, radius: float, sigma: float) -> Pixels:
    """The mean over a disk whose edge is smoothed."""
    from scipy.signal import oaconvolve

    disk = _smoothed_disk(radius, sigma)
    border = len(disk) // 2
    padded = np.pad(pixels, ((border, border), (border, border), (0, 0)), "reflect")
    blurred = [oaconvolve(padded[..., channel], disk, mode="valid") for channel in range(3)]
    return np.stack(blurred, axis=2)


def _smoothed_disk(radius: float, sigma: float) -> Pixels:
    from scipy.signal import convolve2d

    reach, half = (_DISK, 1) if radius <= _DISK else (int(radius), 2)
    places = np.arange(-reach, reach + 1)
    disk = (places[:, None] ** 2 + places**2 <= radius**2).astype(np.float64)
    window = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * sigma**2))
    smoothed = convolve2d(disk, np.outer(window, window), "same")
    return (smoothed / smoothed.sum()).astype(np.float32)


def glass_blur(
    pixels: Pixels, generator: np.random.Generator, sigma: float, reach: int, rounds: int
) -> Pixels:
    """A blur, pixels that take the places of neighbours, a blur."""
    image = to_bytes(_gaussian(pixels, sigma))
    for _ in range(rounds):
        image = _scatter(image, generator, reach)
    return _gaussian(to_pixels(image), sigma)


def _gaussian(pixels: Pixels, sigma: float) -> Pixels:
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(pixels, (sigma, sigma, 0), mode="nearest")


def _scatter(
    image: NDArray[np.uint8], generator: np.random.Generator, reach: int
) -> NDArray[np.uint8]:
    """Each pixel, from the last to the first, becomes the one at a random place nearby.

    The original exchanges the two, but by views of one array, which leaves the other as it was.
    A pixel that takes one that was changed before it takes what that one took, and so on: such
    chains are followed for all pixels at once, by halves of their lengths.
    """
    height, width = image.shape[:2]
    rows, columns = (
        np.arange(reach + 1, size - reach + 1, dtype=np.int32) for size in (height, width)
    )
    if not (rows.size and columns.size):
        return image
    shape = rows.size, columns.size
    down, right = generator.integers(-reach, reach, (2, *shape), np.int8)
    source = np.arange(height * width, dtype=np.int32)
    taken = (rows[:, None] + down) * width + columns + right
    own = rows[:, None] * width + columns
    inside = (taken // width > reach) & (taken // width <= height - reach)
    inside &= (taken % width > reach) & (taken % width <= width - reach)
    is_changed = np.zeros(height * width, bool)  # before the pixel that takes it
    is_changed[own] = inside & (taken > own)
    source[own] = taken
    open_ends = np.flatnonzero(is_changed)
    while open_ends.size:
        nearer = source[open_ends]
        goes_on = is_changed[nearer]
        further = source[nearer]
        source[open_ends], is_changed[open_ends] = further, goes_on
        open_ends = open_ends[goes_on]
    return image.reshape(-1, 3)[source].reshape(image.shape)


def motion_blur(
    pixels: Pixels, generator: np.random.Generator, radius: float, sigma: float
) -> Pixels:
    """Streaks in a direction of at most 45 degrees from the horizontal."""
    return streaked(pixels, radius, sigma, generator.uniform(-45, 45))


def streaked(pixels: Pixels, radius: float, sigma: float, degrees: float) -> Pixels:
    """The mean along a line from each pixel on, with weights that fall off as half a Gaussian.

    As ImageMagick does it: whole steps along the line, the edge's pixels beyond the edge.
    """
    length = 2 * math.ceil(radius) + 1
    steps = np.arange(length)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    angle = math.radians(degrees)
    rights = np.ceil(steps * math.cos(angle) - 0.5).astype(int)
    downs = np.ceil(steps * math.sin(angle) - 0.5).astype(int)
    height, width = pixels.shape[:2]
    border = [(length, length), (length, length), (0, 0)][: pixels.ndim]
    padded = np.pad(pixels, border, "edge")
    blurred = np.zeros_like(pixels)
    for weight, right, down in zip(weights, rights.tolist(), downs.tolist(), strict=True):
        top, left = length + down, length + right
        blurred += np.float32(weight) * padded[top : top + height, left : left + width]
    return blurred


def zoom_blur(pixels: Pixels, _: np.random.Generator, last: float, step: float) -> Pixels:
    """The mean of the image and of enlarged ones."""
    zooms = np.arange(1, last, step).tolist()
    total = pixels.copy()
    for zoom in zooms:
        total += enlarged(pixels, zoom)
    total /= np.float32(len(zooms) + 1)
    return total


def enlarged(pixels: Pixels, zoom: float) -> Pixels:
    """The middle of an image, as large as the image: linear between its pixels."""
    for axis in (0, 1):
        pixels = _stretched(pixels, zoom, axis)
    return pixels


def _stretched(pixels: Pixels, zoom: float, axis: int) -> Pixels:
    size = pixels.shape[axis]
    kept = math.ceil(size / zoom)
    wide = round(kept * zoom)
    first, trimmed = (size - kept) // 2, (wide - size) // 2
    places = np.arange(trimmed, trimmed + size) * ((kept - 1) / max(wide - 1, 1))
    lower = np.minimum(places.astype(int), max(kept - 2, 0))
    shape = [1] * pixels.ndim
    shape[axis] = size
    share = (places - lower).astype(np.float32).reshape(shape)
    upper = np.minimum(lower + 1, kept - 1)
    left, right = pixels.take(first + lower, axis), pixels.take(first + upper, axis)
    right -= left
    right *= share
    right += left
    return right
