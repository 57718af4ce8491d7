"""Elastic transforms: a random affine map, then a random displacement of every pixel."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.corruption.pixelwise import Pixels

_TRUNCATED = 3  # standard deviations of the Gaussian that smoothes displacements
_MOST = 2 / 3  # of the triangle's side, that its corners move: all of what is published


def elastic_transform(
    pixels: Pixels, generator: np.random.Generator, alpha: float, sigma: float, reach: float
) -> Pixels:
    """Move three points, and all others with them; then each pixel by smoothed noise."""
    moved = _moved(pixels, generator, reach)
    shape = pixels.shape[:2]
    noise = generator.random((2, *shape), np.float32)
    noise *= 2
    noise -= 1
    places = np.float32(alpha) * np.stack([smoothed(field, sigma) for field in noise])
    places += np.indices(shape, np.float32)
    return _between(moved, places)


def _moved(pixels: Pixels, generator: np.random.Generator, reach: float) -> Pixels:
    """The image after the affine map that moves three points around its middle at random."""
    from scipy.ndimage import affine_transform

    centre = np.array(pixels.shape[:2]) // 2
    side = max(min(pixels.shape[:2]) // 3, 1)
    points = centre + side * np.array([[1, 1], [-1, 1], [-1, -1]])  # row and column
    reach = min(reach, _MOST * side)
    new = points + generator.uniform(-reach, reach, points.shape)
    # Where a pixel of the new image comes from: [row, column, 1] @ back.
    back = np.linalg.solve(np.column_stack([new, np.ones(3)]), points.astype(float))
    channels = [
        affine_transform(pixels[..., channel], back[:2].T, back[2], order=1, mode="mirror")
        for channel in range(3)
    ]
    return np.stack(channels, axis=2)


def smoothed(noise: Pixels, sigma: float) -> Pixels:
    """Noise (H, W) under a Gaussian that goes on as in a mirror beyond the edges.

    A mirror makes it a product of cosine transforms, whatever sigma: that of the weakest severity
    is 171 pixels.
    """
    from scipy.fft import dctn, idctn

    if not sigma:
        return noise
    height, width = noise.shape
    spectrum = dctn(noise) * _response(height, sigma)[:, None] * _response(width, sigma)
    smooth: Pixels = idctn(spectrum).astype(np.float32)
    return smooth


@lru_cache(maxsize=64)
def _response(size: int, sigma: float) -> NDArray[np.float32]:
    """How much of each cosine wave of an axis a Gaussian leaves that is cut off at 3 sigma."""
    reach = int(_TRUNCATED * sigma + 0.5)
    steps = np.arange(1, reach + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    angles = np.pi * np.arange(size) / size
    response = np.ones(size)
    for step, weight in zip(steps, weights, strict=True):
        response += 2 * weight * np.cos(angles * step)
    return (response / (1 + 2 * math.fsum(weights))).astype(np.float32)


def _between(pixels: Pixels, places: NDArray[np.float32]) -> Pixels:
    """The image at places (2, H, W) between its pixels."""
    from scipy.ndimage import map_coordinates

    channels = [
        map_coordinates(pixels[..., channel], places, order=1, mode="reflect")
        for channel in range(3)
    ]
    return np.stack(channels, axis=2)
