"""Images that come with the package, drawn on demand and the same on every machine.

Image i of a built-in set depends on the set's name, `VERSION` and i alone, so it can be drawn in
any order and by any worker. The embedded encoder never saw their distribution, and each set has its
own style, as in the real benchmark. `digits` are scikit-learn's real handwritten digits.

Noise image i (Sec. 4.2; the four types of the ablation on injected noise) depends on (type, seed,
i) alone. Values are drawn for each pixel and channel, min-max scaled to bytes per image, and go
through the encoder's normal preprocessing.
"""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.catalogue import BUILTIN
from zsntta_cli.datasets.drawn import drawing
from zsntta_cli.datasets.drawn.drawing import Concept, Distribution
from zsntta_cli.datasets.drawn.outlines import SIZE
from zsntta_cli.datasets.images import ImageSet, numbered
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.settings import NOISE_TYPES

VERSION = 1  # of the rendering: raise it when pictures change, caches then miss

_LOOKS: dict[str, tuple[tuple[Concept, ...], Distribution]] = {  # what they show, and how
    "shapes": (drawing.SHAPES, Distribution()),  # in every style and light
    "glyphs": (drawing.LETTERS, Distribution(
        styles={"plain": 3, "outlined": 2, "blurry": 1, "faded": 2, "colourless": 2},
        backgrounds=("gradient", "speckled", "scribbled"),
    )),
    "textures": (drawing.SURFACES, Distribution(
        styles={"plain": 3, "blurry": 2, "grainy": 1, "dark": 2, "faded": 1},
        backgrounds=(),
    )),
    "other-shapes": (drawing.OTHER_SHAPES, Distribution(
        styles={"sketched": 4, "outlined": 2, "plain": 2, "faded": 1, "pixelated": 1},
        backgrounds=("gradient", "scribbled", "blotchy", "striped"),
    )),
}  # fmt: skip


def render(name: str, _root: Path = Path()) -> ImageSet:
    """The images of a set in the catalogue's BUILTIN, 32 x 32 RGB; KeyError for any other set.

    Ids are like "shapes/00001-square". Labels of rendered images are cyclic.
    """
    entry = BUILTIN[name]
    if name == "digits":
        concepts, (read, labels) = drawing.NUMERALS, _scanned()
    else:
        concepts, distribution = _LOOKS[name]
        labels = (np.arange(entry.images) % len(concepts)).astype(np.int32)

        def read(i: int) -> Image.Image:
            gen = np.random.Generator(np.random.PCG64((zlib.crc32(name.encode()), VERSION, i)))
            return Image.fromarray(drawing.draw(concepts[i % len(concepts)], distribution, gen))

    # The prompt itself may say what kind of thing it is.
    names = [c.name if c.kind in entry.prompt else c.noun for c in concepts]
    slugs = [class_name.lower().replace(" ", "-") for class_name in names]
    ids = [f"{name}/{i:05}-{slugs[label]}" for i, label in enumerate(labels)]
    return ImageSet(name, read, labels, ids, names, f"rendering {VERSION}")


def _scanned() -> tuple[Callable[[int], Image.Image], NDArray[np.int32]]:
    """Scikit-learn's scans of handwritten digits, 8 x 8 pixels from 0 to 16, and their labels."""
    from sklearn.datasets import load_digits  # slow to import, and only digits need it

    digits = load_digits()

    def read(i: int) -> Image.Image:
        grey = np.rint(digits.images[i] * (255 / 16)).astype(np.uint8)
        large = Image.fromarray(grey).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
        return large.convert("RGB")

    return read, digits.target.astype(np.int32)


_SALT = 0.025  # share of values that salt-and-pepper sets to the maximum

_Draw = Callable[[np.random.Generator, tuple[int, int, int]], NDArray[np.floating]]
_DRAW: dict[str, _Draw] = {
    "gaussian": lambda generator, shape: generator.standard_normal(shape),
    "uniform": lambda generator, shape: generator.random(shape),
    "salt-and-pepper": lambda generator, shape: (generator.random(shape) < _SALT).astype(float),
    "poisson": lambda generator, shape: generator.poisson(1, shape).astype(float),
}


def noise_images(noise_type: str, count: int, size: int, seed: int = 0) -> ImageSet:
    """`count` noise images of the encoder's image size."""
    assert noise_type in NOISE_TYPES

    def read(i: int) -> Image.Image:
        generator = np.random.Generator(np.random.PCG64([seed, i]))
        values = _DRAW[noise_type](generator, (size, size, 3))
        low, high = values.min(), values.max()
        return Image.fromarray(((values - low) / (high - low or 1) * 255).astype(np.uint8))

    labels, words = np.full(count, -1, np.int32), f"{noise_type} seed {seed} size {size}"
    return ImageSet(noise_name(noise_type), read, labels, numbered(count), fingerprint=words)
