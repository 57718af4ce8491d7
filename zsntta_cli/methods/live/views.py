"""The augmented views of an image that TPT tunes its prompt on.

A view is a random crop, resized and perhaps flipped; with AugMix ("A Simple Data Processing Method
to Improve Robustness and Uncertainty", arXiv 1912.02781), it is mixed with three chains of one to
three random operations on it. Every random choice comes from one generator per item, so the views
do not depend on the method, the pipeline or the threads.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps

from zsntta_cli.datasets.images import UNREADABLE
from zsntta_cli.encoders.batches import unreadable
from zsntta_cli.methods.live.base import LiveData

_AREA = (0.08, 1.0)  # of a crop, as a share of the image's
_ASPECT = (3 / 4, 4 / 3)
_ATTEMPTS = 10  # at a crop that fits
_CHAINS, _LONGEST_CHAIN = 3, 3
_LEVEL = (0.1, 1.0)  # of AugMix's operations, of ten; TPT's severity

Random = np.random.Generator


def load_views(
    data: LiveData, items: NDArray[np.int64], count: int, augmix: bool
) -> Iterator[tuple[int, torch.Tensor]]:
    """Each item and `count` views (count, 3, H, W) of it, made ahead by threads."""
    size = data.encoder.image_size

    def make(item: int) -> NDArray[np.float32]:
        generator = np.random.Generator(np.random.PCG64([data.stream.seed, item]))
        try:
            image = data.images.read(item)
        except UNREADABLE as error:
            raise unreadable(data.images, item, error) from error
        return image_views(image, size, count, augmix, generator)

    waiting: deque[tuple[int, Future[NDArray[np.float32]]]] = deque()
    threads = ThreadPoolExecutor(data.workers)
    try:
        for item in items.tolist():
            waiting.append((item, threads.submit(make, item)))
            if len(waiting) > data.workers:
                first, views = waiting.popleft()
                yield first, data.encoder.normalize(views.result())
        for first, views in waiting:
            yield first, data.encoder.normalize(views.result())
    finally:
        threads.shutdown(cancel_futures=True)


def image_views(
    image: Image.Image, size: int, count: int, augmix: bool, generator: Random
) -> NDArray[np.float32]:
    """`count` views (count, size, size, 3) of an image, as values 0 … 255."""
    views = np.empty((count, size, size, 3), np.float32)
    for i in range(count):
        view = random_crop(image, size, generator)
        views[i] = mixed(view, generator) if augmix else np.asarray(view)
    return views


def random_crop(image: Image.Image, size: int, generator: Random) -> Image.Image:
    """A crop of random area and aspect ratio, resized to a square, flipped half of the time."""
    crop = image.resize(
        (size, size), Image.Resampling.BILINEAR, box=_random_box(image.size, generator)
    )
    return ImageOps.mirror(crop) if generator.random() < 0.5 else crop


def _random_box(size: tuple[int, int], generator: Random) -> tuple[int, int, int, int]:
    """Left, upper, right, lower; the largest crop of a good aspect where no random one fits."""
    width, height = size
    for _ in range(_ATTEMPTS):
        area = width * height * generator.uniform(*_AREA)
        aspect = np.exp(generator.uniform(*np.log(_ASPECT)))
        w, h = round(np.sqrt(area * aspect)), round(np.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left = int(generator.integers(0, width - w + 1))
            upper = int(generator.integers(0, height - h + 1))
            return left, upper, left + w, upper + h
    aspect = min(max(width / height, _ASPECT[0]), _ASPECT[1])
    w, h = min(width, round(height * aspect)), min(height, round(width / aspect))
    left, upper = (width - w) // 2, (height - h) // 2
    return left, upper, left + w, upper + h


def mixed(view: Image.Image, generator: Random) -> NDArray[np.float32]:
    """AugMix of a view (H, W, 3): a convex combination of it and of chains of operations on it."""
    weights = generator.dirichlet([1.0] * _CHAINS)
    own = generator.beta(1.0, 1.0)
    mix = own * np.asarray(view, np.float32)
    for weight in weights:
        chained = view
        for _ in range(int(generator.integers(1, _LONGEST_CHAIN + 1))):
            operation = OPERATIONS[int(generator.integers(len(OPERATIONS)))]
            chained = operation(chained, generator)
        mix += np.float32((1 - own) * weight) * np.asarray(chained, np.float32)
    return mix.astype(np.float32)


def _amount(most: float, generator: Random) -> float:
    """A random strength: `most` would be level 10."""
    return float(generator.uniform(*_LEVEL)) * most / 10


def _signed(value: float, generator: Random) -> float:
    return -value if generator.random() < 0.5 else value


def _sheared(view: Image.Image, x: float, y: float) -> Image.Image:
    matrix = (1, x, 0, y, 1, 0)
    return view.transform(view.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


def _translated(view: Image.Image, x: int, y: int) -> Image.Image:
    moved = Image.new(view.mode, view.size)
    moved.paste(view, (x, y))
    return moved


# AugMix's nine operations; none of them is among the corruptions of ImageNet-C.
OPERATIONS: tuple[Callable[[Image.Image, Random], Image.Image], ...] = (
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
