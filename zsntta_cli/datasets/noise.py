"""Injected noise images (Sec. 4.2; the four types of the ablation on injected noise).

Image i depends on (type, seed, i) alone. Values are drawn for each pixel and channel, min-max
scaled to bytes per image, and go through the encoder's normal preprocessing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.images import ImageSet, numbered
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.settings import NOISE_TYPES

_SALT = 0.025  # share of values that salt-and-pepper sets to the maximum

_Draw = Callable[[np.random.Generator, tuple[int, int, int]], NDArray[np.floating]]
_DRAW: dict[str, _Draw] = {
    "gaussian": lambda generator, shape: generator.standard_normal(shape),
    "uniform": lambda generator, shape: generator.random(shape),
    "salt-and-pepper": lambda generator, shape: (generator.random(shape) < _SALT).astype(float),
    "poisson": lambda generator, shape: generator.poisson(1, shape).astype(float),
}


@dataclass(frozen=True)
class _NoiseImage:
    """Draw noise image i."""

    noise_type: str
    seed: int
    size: int

    def __call__(self, i: int) -> Image.Image:
        generator = np.random.Generator(np.random.PCG64([self.seed, i]))
        values = _DRAW[self.noise_type](generator, (self.size, self.size, 3))
        low, high = values.min(), values.max()
        scaled = (values - low) / (high - low or 1) * 255
        return Image.fromarray(scaled.astype(np.uint8))


def noise_images(noise_type: str, count: int, size: int, seed: int = 0) -> ImageSet:
    """`count` noise images of the encoder's image size."""
    assert noise_type in NOISE_TYPES
    return ImageSet(
        noise_name(noise_type),
        _NoiseImage(noise_type, seed, size),
        np.full(count, -1, np.int32),
        numbered(count),
        fingerprint=f"{noise_type} seed {seed} size {size}",
        reload=partial(noise_images, noise_type, count, size, seed),
    )
