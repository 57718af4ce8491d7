"""Images to corrupted images: what is read is what a clean set gives, whoever reads it and when."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.corruption import Corruption, blurs, elastic, pixelwise, weather
from zsntta_cli.datasets.corruption.pixelwise import Pixels, to_bytes, to_pixels
from zsntta_cli.datasets.corruption.strengths import strength
from zsntta_cli.datasets.images import CORRUPTED, ImageSet

SIZE = 224  # pixels a side, of ImageNet-C and of most of CLIP's encoders
_ROOMS = (pixelwise, blurs, weather, elastic)


def corrupted(images: ImageSet, name: str, corruption: Corruption) -> ImageSet:
    """The images of a set under another name, each corrupted as it is read."""
    return replace(
        images,
        name=name,
        read=CorruptedImages(images.read, corruption),
        reading={**images.reading, CORRUPTED: str(corruption)},
    )


@dataclass(frozen=True)
class CorruptedImages:
    """Read image i of a set and corrupt it."""

    read: Callable[[int], Image.Image]
    corruption: Corruption

    def __call__(self, i: int) -> Image.Image:
        """The image, as RGB; OSError where it is broken."""
        image = self.read(i).convert("RGB")
        if not self.corruption.is_before:
            image = cropped(image)
        return Image.fromarray(corrupt(np.asarray(image), self.corruption))


def cropped(image: Image.Image, size: int = SIZE) -> Image.Image:
    """The middle of an image whose shorter side is made `size` pixels, as CLIP's encoders do it."""
    width, height = image.size
    shorter = min(width, height)
    wide, high = size * width // shorter, size * height // shorter
    if (wide, high) != image.size:
        image = image.resize((wide, high), Image.Resampling.BICUBIC)
    left, top = round((wide - size) / 2), round((high - size) / 2)
    return image.crop((left, top, left + size, top + size))


def corrupt(image: NDArray[np.uint8], corruption: Corruption) -> NDArray[np.uint8]:
    """The corrupted image (H, W, 3): its randomness comes from its content and the corruption.

    All severities of a corruption draw the same numbers, and so do two images that are alike.
    """
    height, width, _ = image.shape
    values = strength(corruption.name, corruption.severity, height, width)
    generator = np.random.Generator(np.random.PCG64(seed(image, corruption.name)))
    return to_bytes(_function(corruption.name)(to_pixels(image), generator, *values))


def seed(image: NDArray[np.uint8], name: str) -> int:
    """The random seed of an image, of what is in it and the name of a corruption."""
    digest = hashlib.sha256(f"{name} {image.shape}".encode())
    digest.update(np.ascontiguousarray(image).data)
    return int.from_bytes(digest.digest()[:16], "big")


@cache
def _function(name: str) -> Callable[..., Pixels]:
    function: Callable[..., Pixels] = next(
        getattr(room, name) for room in _ROOMS if hasattr(room, name)
    )
    return function
