"""TPT's views: those of Pillow, an operation at a time, beside the compiled ones, which are equal.

    .venv/bin/python benchmarks/views.py --size 32 --size 224

Milliseconds an item of 63 views on a thread, as TPT makes them; medians of turns: both take the
same items one after the other, so what else runs on the machine slows both alike.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from rich.console import Console
from rich.table import Table

from zsntta_cli.methods.live import views

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reference import augmix as plain

Make = Callable[..., NDArray[np.float32]]
SOURCES = {32: (32, 32), 224: (500, 375)}  # CIFAR's and ImageNet's images


def pictures(size: tuple[int, int], count: int) -> list[Image.Image]:
    """Smoothed noise: its histograms have the empty places that photos' have."""
    generator = np.random.default_rng(0)
    noise = generator.integers(0, 256, (count, size[1], size[0], 3), np.uint8)
    return [Image.fromarray(one).filter(ImageFilter.GaussianBlur(1)) for one in noise]


def timed(make: Make, image: Image.Image, size: int, item: int, augmix: bool) -> tuple[float, int]:
    """Milliseconds, and a digest of the views."""
    generator = np.random.Generator(np.random.PCG64([0, item]))
    started = time.perf_counter()
    made = make(image, size, 63, augmix, generator)
    return 1000 * (time.perf_counter() - started), hash(made.tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, action="append", choices=sorted(SOURCES))
    parser.add_argument("--items", type=int, default=20)
    options = parser.parse_args()
    thread = ThreadPoolExecutor(1)
    table = Table(title="63 views of an item, ms on one thread", title_justify="left")
    for head in ("pixels", "AugMix", "Pillow", "compiled", "Pillow / compiled"):
        table.add_column(head, justify="right")
    for size in options.size or sorted(SOURCES):
        images = pictures(SOURCES[size], options.items)
        for augmix in (True, False):
            run = thread.submit(timed, views.image_views, images[0], size, 0, augmix)
            run.result()  # compiled or loaded
            times: tuple[list[float], list[float]] = [], []
            for item, image in enumerate(images):
                digests = set[int]()
                for kept, make in zip(times, (plain.image_views, views.image_views), strict=True):
                    run = thread.submit(timed, make, image, size, item, augmix)
                    milliseconds, digest = run.result()
                    kept.append(milliseconds)
                    digests.add(digest)
                assert len(digests) == 1, "the views differ"
            before, now = map(statistics.median, times)
            row = (f"{before:.1f}", f"{now:.1f}", f"{before / now:.2f}")
            table.add_row(str(size), "yes" if augmix else "no", *row)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
