"""AugMix: a view is mixed with three chains of one to three random operations on it.

"A Simple Data Processing Method to Improve Robustness and Uncertainty", arXiv 1912.02781.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

_CHAINS, _LONGEST_CHAIN = 3, 3
_LEVEL = (0.1, 1.0)  # level of the operations, at most 10; TPT's severity

Random = np.random.Generator
Picture = Image.Image


def mixed(view: Picture, generator: Random) -> NDArray[np.float32]:
    """A convex combination (H, W, 3) of a view and of chains of operations on it."""
    weights = generator.dirichlet([1.0] * _CHAINS)
    view_weight = generator.beta(1.0, 1.0)
    mix = np.float32(view_weight) * np.asarray(view, np.float32)
    for weight in weights:
        chained = view
        for _ in range(int(generator.integers(1, _LONGEST_CHAIN + 1))):
            operation = OPERATIONS[int(generator.integers(len(OPERATIONS)))]
            chained = operation(chained, generator)
        mix += np.float32((1 - view_weight) * weight) * np.asarray(chained, np.float32)
    return mix


def _sheared(view: Picture, x: float, y: float) -> Picture:
    matrix = (1, x, 0, y, 1, 0)
    return view.transform(view.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


def _translated(view: Picture, x: int, y: int) -> Picture:
    moved = Image.new(view.mode, view.size)
    moved.paste(view, (x, y))
    return moved


def _amount(most: float, generator: Random) -> float:
    """A random strength; `most` is that of level 10."""
    return float(generator.uniform(*_LEVEL)) * most / 10


def _signed(value: float, generator: Random) -> float:
    return -value if generator.random() < 0.5 else value


# AugMix's nine operations; none of them is among the corruptions of ImageNet-C.
OPERATIONS: tuple[Callable[[Picture, Random], Picture], ...] = (
    lambda view, _: ImageOps.autocontrast(view),
    lambda view, _: ImageOps.equalize(view),
    lambda view, g: ImageOps.posterize(view, 4 - int(_amount(4, g))),
    lambda view, g: ImageOps.solarize(view, 256 - int(_amount(256, g))),
    lambda view, g: view.rotate(_signed(int(_amount(30, g)), g), Image.Resampling.BILINEAR),
    lambda view, g: _sheared(view, _signed(_amount(0.3, g), g), 0),
    lambda view, g: _sheared(view, 0, _signed(_amount(0.3, g), g)),
    lambda view, g: _translated(view, int(_signed(_amount(view.width / 3, g), g)), 0),
    lambda view, g: _translated(view, 0, int(_signed(_amount(view.height / 3, g), g))),
)
