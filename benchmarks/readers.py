"""How fast images are read: JPEGs of ImageNet's size, decoded and resized, and the drawn sets.

    .venv/bin/python benchmarks/readers.py --images 512

Images are read by 1, 2 … threads of one process, as in an extraction, and by as many processes with
one thread each. Values are medians of alternating runs. The processor's time is that of one thread:
an encoder of N images per second needs N times its milliseconds / 1000 in cores, if nothing else
limits it.
"""

import argparse
import io
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache, partial
from multiprocessing import get_context

import numpy as np
from PIL import Image, ImageFilter
from rich.console import Console
from rich.table import Table
from torchvision.transforms import CenterCrop, Compose, InterpolationMode, Resize

from zsntta_cli.datasets.drawn.builtin import render

JPEGS, SIZE = 16, (500, 375)
Read = Callable[[int], object]


@cache
def jpegs() -> list[bytes]:
    """Photo-like pictures: smooth hills with grain, as large as ImageNet's files (100 KB)."""
    generator = np.random.default_rng(0)
    files = []
    for _ in range(JPEGS):
        hills = Image.fromarray(generator.integers(0, 256, (12, 16, 3), np.uint8)).resize(SIZE)
        grain = generator.normal(0, 25, (SIZE[1], SIZE[0], 3))
        noisy = np.clip(np.asarray(hills) + grain, 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(noisy).filter(ImageFilter.GaussianBlur(0.7)).save(file, "JPEG", quality=95)
        files.append(file.getvalue())
    return files


@cache
def resized() -> Compose:
    """open_clip's steps for a ViT-B/16."""
    return Compose([Resize(224, InterpolationMode.BICUBIC), CenterCrop(224)])


def decode(i: int) -> object:
    with Image.open(io.BytesIO(jpegs()[i % JPEGS])) as image:
        return np.asarray(resized()(image.convert("RGB")))


def draw(name: str, i: int) -> object:
    return np.asarray(render(name).read(i))


def read_rows(read: Read, rows: range) -> int:
    for i in rows:
        read(i)
    return len(rows)


def rate(pool: ProcessPoolExecutor | ThreadPoolExecutor, read: Read, count: int) -> float:
    """Images per second, in tasks of 16."""
    tasks = [range(i, min(i + 16, count)) for i in range(0, count, 16)]
    started = time.perf_counter()
    done = sum(pool.map(partial(read_rows, read), tasks))
    return done / (time.perf_counter() - started)


def milliseconds(read: Read, count: int) -> float:
    started = time.process_time()
    read_rows(read, range(count))
    return 1000 * (time.process_time() - started) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    reads: dict[str, Read] = {"JPEG 500 x 375, decode + resize": decode}
    reads |= {f"{name}, drawn": partial(draw, name) for name in ("shapes", "textures")}
    spawn = get_context("spawn")
    pools: dict[str, ProcessPoolExecutor | ThreadPoolExecutor] = {}
    for count in options.workers:
        pools[f"threads: {count}"] = ThreadPoolExecutor(count)
        pools[f"processes: {count}"] = ProcessPoolExecutor(count, spawn)
    mean = sum(map(len, jpegs())) / JPEGS / 1000
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    table = Table(
        title=f"images/s on {cores} cores, load {load:.1f} at the start; JPEGs of {mean:.0f} KB",
        title_justify="left",
    )
    table.add_column("what")
    for head in (*pools, "CPU ms an image"):
        table.add_column(head, justify="right")
    for what, read in reads.items():
        rates: dict[str, list[float]] = {name: [] for name in pools}
        for pool in pools.values():
            rate(pool, read, 32)  # so that workers are started, and caches filled
        for _ in range(options.rounds):
            for name, pool in pools.items():
                rates[name].append(rate(pool, read, options.images))
        medians = [f"{statistics.median(found):,.0f}" for found in rates.values()]
        table.add_row(what, *medians, f"{milliseconds(read, options.images):.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
