"""The augmented views of an image that TPT tunes its prompt on.

A view is a random crop, resized and perhaps flipped, and mixed with AugMix's changes of it ("A
Simple Data Processing Method to Improve Robustness and Uncertainty", arXiv 1912.02781): three
chains of one to three random operations. Every random choice comes from one generator for each
item, so the views do not depend on the method, the pipeline or the threads. It is seeded by the
image's set and name, so that an image has the same views in every stream, or by the stream's seed
and the item's place.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps

from zsntta_cli.datasets.images import UNREADABLE
from zsntta_cli.encoders.batches import unreadable
from zsntta_cli.methods.live import base as live
from zsntta_cli.methods.live.settings import BY_IMAGE

_AREA = (0.08, 1.0)  # of a crop, as a share of the image
_ASPECT = (3 / 4, 4 / 3)
_LOG_ASPECT = (math.log(_ASPECT[0]), math.log(_ASPECT[1]))
_ATTEMPTS = 10  # to draw a crop that fits
_CHAINS, _LONGEST_CHAIN = 3, 3
_LEVEL = (0.1, 1.0)  # level of the operations, at most 10; TPT's severity
Random = np.random.Generator
Picture = Image.Image


def load_views(
    data: live.LiveData, items: NDArray[np.int64], count: int, augmix: bool, by: str = BY_IMAGE
) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield each item and its views (count, 3, H, W), which threads make ahead.

    `by` tells whether an image has the same views in all streams, or other views in each.
    """
    size = data.encoder.image_size

    def make(item: int) -> NDArray[np.float32]:
        seed = data.view_seeds[item] if by == BY_IMAGE else [data.stream.seed, item]
        generator = np.random.Generator(np.random.PCG64(seed))
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
    image: Picture, size: int, count: int, augmix: bool, generator: Random
) -> NDArray[np.float32]:
    """Make views (count, size, size, 3) of an image, with values 0 … 255."""
    views = np.empty((count, size, size, 3), np.float32)
    for i in range(count):
        view = random_crop(image, size, generator)
        views[i] = mixed(view, generator) if augmix else np.asarray(view)
    return views


def random_crop(image: Picture, size: int, generator: Random) -> Picture:
    """A crop of random area and aspect ratio, resized to a square, flipped half of the time."""
    crop = image.resize(
        (size, size), Image.Resampling.BILINEAR, box=_random_box(image.size, generator)
    )
    return ImageOps.mirror(crop) if generator.random() < 0.5 else crop


def _random_box(size: tuple[int, int], generator: Random) -> tuple[int, int, int, int]:
    """Left, upper, right, lower of a random crop, or of the largest good one if none fits."""
    width, height = size
    for _ in range(_ATTEMPTS):
        area = width * height * generator.uniform(*_AREA)
        aspect = np.exp(generator.uniform(*_LOG_ASPECT))
        w, h = round(np.sqrt(area * aspect)), round(np.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left = int(generator.integers(0, width - w + 1))
            upper = int(generator.integers(0, height - h + 1))
            return left, upper, left + w, upper + h
    aspect = min(max(width / height, _ASPECT[0]), _ASPECT[1])
    w, h = min(width, round(height * aspect)), min(height, round(width / aspect))
    left, upper = (width - w) // 2, (height - h) // 2
    return left, upper, left + w, upper + h


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
