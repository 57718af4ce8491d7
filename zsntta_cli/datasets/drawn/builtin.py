"""Images that come with the package, drawn on demand and the same on every machine.

Image i of a built-in set depends on the set's name, `VERSION` and i alone, so it can be drawn in
any order and by any worker. All rendered sets come from the held-out distribution of
`drawing`, which the embedded encoder never saw; as in the real benchmark each set has a
style of its own. `digits` are the real handwritten digits that scikit-learn carries.

Noise image i (Sec. 4.2; the four types of the ablation on injected noise) depends on (type, seed,
i) alone. Values are drawn for each pixel and channel, min-max scaled to bytes per image, and go
through the encoder's normal preprocessing.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.catalogue import BUILTIN
from zsntta_cli.datasets.drawn.drawing import (
    HELD_OUT,
    LETTERS,
    NUMERALS,
    OTHER_SHAPES,
    SHAPES,
    SURFACES,
    Concept,
    Distribution,
    draw,
)
from zsntta_cli.datasets.drawn.outlines import SIZE
from zsntta_cli.datasets.images import ImageSet, numbered
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.settings import NOISE_TYPES

VERSION = 1  # of the rendering: raise it when pictures change, caches then miss


_PRINTED = replace(
    HELD_OUT,
    styles={"plain": 3, "outlined": 2, "blurry": 1, "faded": 2, "colourless": 2},
    backgrounds=("gradient", "speckled", "scribbled"),
)
_CLOSE_UP = replace(
    HELD_OUT, styles={"plain": 3, "blurry": 2, "grainy": 1, "dark": 2, "faded": 1}, backgrounds=()
)
_SKETCHBOOK = replace(
    HELD_OUT,
    styles={"sketched": 4, "outlined": 2, "plain": 2, "faded": 1, "pixelated": 1},
    backgrounds=("gradient", "scribbled", "blotchy", "striped"),
)


_LOOKS: dict[str, tuple[tuple[Concept, ...], Distribution | None]] = {  # what they show, and how
    "shapes": (SHAPES, HELD_OUT),  # in every style and light
    "glyphs": (LETTERS, _PRINTED),
    "textures": (SURFACES, _CLOSE_UP),
    "other-shapes": (OTHER_SHAPES, _SKETCHBOOK),
    "digits": (NUMERALS, None),  # scikit-learn's scans of 8 x 8 pixels, enlarged
}


class RenderedImages:
    """The images of one built-in set. Cheap to make, to pickle and to share."""

    def __init__(self, name: str) -> None:
        """`name` is one of the catalogue's BUILTIN; raises KeyError for another."""
        self.name, self.count, prompt = name, BUILTIN[name].images, BUILTIN[name].prompt
        self._concepts, self._distribution = _LOOKS[name]
        # As they stand in the catalogue's prompt.
        self.class_names = [c.name if c.kind in prompt else c.noun for c in self._concepts]

    def __len__(self) -> int:
        return self.count

    @property
    def labels(self) -> NDArray[np.int32]:
        """Class of every image: cyclic where rendered, scikit-learn's own for digits."""
        if self._distribution is None:
            return _load_digits()[1]
        return (np.arange(self.count) % len(self._concepts)).astype(np.int32)

    @property
    def sample_ids(self) -> list[str]:
        """Names such as "shapes/00001-square"."""
        slugs = [name.lower().replace(" ", "-") for name in self.class_names]
        return [f"{self.name}/{i:05}-{slugs[label]}" for i, label in enumerate(self.labels)]

    def image(self, i: int) -> Image.Image:
        """Draw image i (RGB, 32 x 32)."""
        if not 0 <= i < self.count:
            raise IndexError(f"{self.name} has {self.count} images, no image {i}")
        if self._distribution is None:
            grey = np.rint(_load_digits()[0][i] * (255 / 16)).astype(np.uint8)
            large = Image.fromarray(grey).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
            return large.convert("RGB")
        gen = np.random.Generator(np.random.PCG64((zlib.crc32(self.name.encode()), VERSION, i)))
        concept = self._concepts[i % len(self._concepts)]
        return Image.fromarray(draw(concept, self._distribution, gen).pixels)

    __call__ = image


render = RenderedImages


@cache
def _load_digits() -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return scikit-learn's digits, (1797, 8, 8) in 0 ... 16, and their labels."""
    from sklearn.datasets import load_digits  # slow to import, and only digits need it

    data = load_digits()
    return data.images, data.target.astype(np.int32)


def read(name: str, _root: Path) -> ImageSet:
    """A built-in set; needs no files."""
    images = RenderedImages(name)
    return ImageSet(
        name, images, images.labels, images.sample_ids, images.class_names, f"rendering {VERSION}"
    )


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
    )
