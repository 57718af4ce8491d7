"""Widths and heights of a set's images, of some that are looked at; what they tell of the set."""

from collections import Counter
from collections.abc import Mapping

from zsntta_cli.datasets.images import UNREADABLE, ImageSet

_LOOKED_AT = 64

Sizes = Mapping[tuple[int, int], int]  # images by width and height


def image_sizes(images: ImageSet) -> Sizes:
    """The sizes of up to 64 images, the same ones each time; broken ones are left out."""
    sizes = Counter[tuple[int, int]]()
    count = min(len(images), _LOOKED_AT)
    for i in range(count):
        try:
            sizes[images.read(i * len(images) // count).size] += 1
        except UNREADABLE:
            continue
    return sizes


def in_words(sizes: Sizes) -> str:
    """Sizes as a text: the usual one where it is that of most, else the range of both sides."""
    if len(sizes) <= 1:
        return " or ".join(f"{width} x {height}" for width, height in sizes)
    (width, height), count = max(sizes.items(), key=lambda item: item[1])
    widths, heights = zip(*sizes, strict=True)
    least, most = f"{min(widths)} x {min(heights)}", f"{max(widths)} x {max(heights)}"
    usual = f", most {width} x {height}" if 2 * count > sum(sizes.values()) else ""
    return f"{least} to {most}{usual}"
