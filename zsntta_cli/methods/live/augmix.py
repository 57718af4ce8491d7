"""AugMix: a view is mixed with three chains of one to three random operations on it.

"A Simple Data Processing Method to Improve Robustness and Uncertainty", arXiv 1912.02781. The
operations are compiled and give the same bytes as Pillow's. Pillow is slower, because it passes
tables through Python lists and geometry through a fourth channel, and holds Python's lock.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.kernels.compiled import compiled

_CHAINS, _LONGEST_CHAIN = 3, 3
_LEVEL = (0.1, 1.0)  # level of the operations, at most 10; TPT's severity

Random = np.random.Generator
Pixels = NDArray[np.uint8]  # (H, W, 3)


def mixed(view: Pixels, generator: Random) -> NDArray[np.float32]:
    """A convex combination (H, W, 3) of a view and of chains of operations on it."""
    weights = generator.dirichlet([1.0] * _CHAINS)
    view_weight = generator.beta(1.0, 1.0)
    view, mix = np.ascontiguousarray(view), np.zeros(view.shape, np.float32)
    _add(mix.reshape(-1), view.reshape(-1), view_weight)
    for weight in weights:
        chained = view
        for _ in range(int(generator.integers(1, _LONGEST_CHAIN + 1))):
            operation = OPERATIONS[int(generator.integers(len(OPERATIONS)))]
            chained = operation(chained, generator)
        _add(mix.reshape(-1), chained.reshape(-1), (1 - view_weight) * float(weight))
    return mix


@compiled
def _add(mix, values, weight):  # type: ignore[no-untyped-def]
    factor = np.float32(weight)
    for i in range(len(mix)):
        mix[i] += factor * np.float32(values[i])


def _contrasted(pixels: Pixels) -> Pixels:
    """Stretch each channel, so that its darkest value is 0 and its brightest 255."""
    return _by_tables(_contrast, pixels)


def _equalized(pixels: Pixels) -> Pixels:
    """Map each channel so that its values are spread as evenly as possible."""
    return _by_tables(_equalize, pixels)


def _by_tables(kernel: Callable[..., None], pixels: Pixels) -> Pixels:
    mapped, counts = np.empty_like(pixels), np.zeros((3, 256), np.int64)
    kernel(mapped, pixels, counts, np.empty((3, 256), np.uint8))
    return mapped


@compiled
def _contrast(mapped, pixels, counts, tables):  # type: ignore[no-untyped-def]
    _count(counts, pixels)
    for channel in range(3):
        low, high = 0, 255
        while counts[channel, low] == 0:
            low += 1
        while counts[channel, high] == 0:
            high -= 1
        scale = 255.0 / (high - low) if high > low else 1.0
        offset = -low * scale if high > low else 0.0
        for i in range(256):
            tables[channel, i] = min(max(int(i * scale + offset), 0), 255)
    _map(mapped, pixels, tables)


@compiled
def _equalize(mapped, pixels, counts, tables):  # type: ignore[no-untyped-def]
    _count(counts, pixels)
    for channel in range(3):
        last = 255
        while counts[channel, last] == 0:
            last -= 1
        step = (counts[channel].sum() - counts[channel, last]) // 255
        below = step // 2
        for i in range(256):
            tables[channel, i] = min(below // step, 255) if step else i
            below += counts[channel, i]
    _map(mapped, pixels, tables)


def _count(counts: NDArray[np.int64], pixels: Pixels) -> None:
    """Add to counts (3, 256) how often each channel of pixels (H, W, 3) has each value."""
    for y in range(pixels.shape[0]):
        for x in range(pixels.shape[1]):
            for channel in range(3):
                counts[channel, pixels[y, x, channel]] += 1


def _map(mapped: Pixels, pixels: Pixels, tables: NDArray[np.uint8]) -> None:
    """Map each value of pixels (H, W, 3) by the table of its channel, of (3, 256)."""
    for y in range(pixels.shape[0]):
        for x in range(pixels.shape[1]):
            for channel in range(3):
                mapped[y, x, channel] = tables[channel, pixels[y, x, channel]]


def _moved(
    pixels: Pixels, xx: float, xy: float, x0: float, yx: float, yy: float, y0: float
) -> Pixels:
    """Bilinear values at (xx x + xy y + x0, yx x + yy y + y0); pixels have centres at halves.

    Points outside the image are black.
    """
    moved = np.zeros_like(pixels)
    _move(moved, pixels, xx, xy, x0, yx, yy, y0)
    return moved


@compiled
def _move(moved, pixels, xx, xy, x0, yx, yy, y0):  # type: ignore[no-untyped-def]
    height, width, _ = pixels.shape
    for row in range(height):
        for column in range(width):
            x = xx * (column + 0.5) + xy * (row + 0.5) + x0
            y = yx * (column + 0.5) + yy * (row + 0.5) + y0
            if x < 0 or x >= width or y < 0 or y >= height:
                continue
            left, upper = math.floor(x - 0.5), math.floor(y - 0.5)
            across, down = x - 0.5 - left, y - 0.5 - upper
            right, lower = min(left + 1, width - 1), min(upper + 1, height - 1)
            left, upper = max(left, 0), max(upper, 0)
            for c in range(3):
                first, second = float(pixels[upper, left, c]), float(pixels[lower, left, c])
                first += (float(pixels[upper, right, c]) - first) * across
                second += (float(pixels[lower, right, c]) - second) * across
                moved[row, column, c] = int(first + (second - first) * down)


def _rotated(pixels: Pixels, degrees: int) -> Pixels:
    """Rotate to the left about the centre."""
    if degrees == 0:
        return pixels
    angle = -math.radians(degrees % 360)
    cos, sin = round(math.cos(angle), 15), round(math.sin(angle), 15)  # as Pillow rounds them
    x, y = pixels.shape[1] / 2, pixels.shape[0] / 2
    return _moved(pixels, cos, sin, cos * -x + sin * -y + x, -sin, cos, -sin * -x + cos * -y + y)


def _sheared(pixels: Pixels, x: float, y: float) -> Pixels:
    return _moved(pixels, 1.0, x, 0.0, y, 1.0, 0.0)


def _translated(pixels: Pixels, x: int, y: int) -> Pixels:
    height, width, _ = pixels.shape
    moved = np.zeros_like(pixels)
    moved[max(y, 0) : height + min(y, 0), max(x, 0) : width + min(x, 0)] = pixels[
        max(-y, 0) : height - max(y, 0), max(-x, 0) : width - max(x, 0)
    ]
    return moved


def _posterized(pixels: Pixels, bits: int) -> Pixels:
    return pixels & np.uint8(256 - 2 ** (8 - bits))


def _solarized(pixels: Pixels, threshold: int) -> Pixels:
    return np.where(pixels < threshold, pixels, ~pixels)


def _amount(most: float, generator: Random) -> float:
    """A random strength; `most` is that of level 10."""
    return float(generator.uniform(*_LEVEL)) * most / 10


def _signed(value: float, generator: Random) -> float:
    return -value if generator.random() < 0.5 else value


# AugMix's nine operations; none of them is among the corruptions of ImageNet-C.
OPERATIONS: tuple[Callable[[Pixels, Random], Pixels], ...] = (
    lambda view, _: _contrasted(view),
    lambda view, _: _equalized(view),
    lambda view, g: _posterized(view, 4 - int(_amount(4, g))),
    lambda view, g: _solarized(view, 256 - int(_amount(256, g))),
    lambda view, g: _rotated(view, int(_signed(int(_amount(30, g)), g))),
    lambda view, g: _sheared(view, _signed(_amount(0.3, g), g), 0.0),
    lambda view, g: _sheared(view, 0.0, _signed(_amount(0.3, g), g)),
    lambda view, g: _translated(view, int(_signed(_amount(view.shape[1] / 3, g), g)), 0),
    lambda view, g: _translated(view, 0, int(_signed(_amount(view.shape[0] / 3, g), g))),
)
