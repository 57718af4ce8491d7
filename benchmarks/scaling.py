"""The time per item by the number of items, classes and dimensions, compared with a lower bound.

    python benchmarks/scaling.py [--rounds 5] [--method NAME …] [--long 1000000]

On one thread of this machine, no replay can be faster than the bytes of the features divided by the
bandwidth of reading, or the multiplications divided by the rate of matrix products; both rates are
measured first. TDA's bound is that of full caches. Memory is that of a separate process, by the
number of rows in its feature files.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from beside import write
from methods import microseconds, shown, stream
from rich.console import Console
from rich.table import Table
from tasks import peak_memory, simulation
from threadpoolctl import threadpool_limits

from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.settings import StreamSettings

METHODS = ("zs-clip", "adand", "cull", "tda")
ITEMS, CLASSES, DIM = 10_000, 100, 512  # while the others vary
KEYS = 5  # per class in TDA's two caches when they are full


def fastest(work: Callable[[], object], rounds: int = 7) -> float:
    """The seconds of the fastest round."""
    return min(timeit.repeat(work, number=1, repeat=rounds))


def machine() -> tuple[float, float]:
    """The bytes per second that one thread reads, and its multiply-adds per second in float32."""
    read = np.ones(2**27, np.float32)
    left, right = np.ones((1024, 512), np.float32), np.ones((512, 1000), np.float32)
    with threadpool_limits(1, "blas"):
        products = left.shape[0] * right.size / fastest(lambda: left @ right)
        return read.nbytes / fastest(read.max), products


def scored(items: int, classes: int, dim: int, rounds: int) -> float:
    """The microseconds of an item's zero-shot scores, from float16."""
    data = stream(items, classes, 1, dim)
    features = data.image_features.astype(np.float16)
    score = partial(zero_shot, features, data.text_features, 100.0)
    with threadpool_limits(1, "blas"):
        return fastest(score, rounds) / items * 1e6


def floors(classes: int, dim: int, bandwidth: float, products: float) -> list[float]:
    """The least microseconds per item: of the scores, and of each of METHODS."""
    read = {"adand": 4 * dim / bandwidth, "cull": 4 * dim / bandwidth}
    product = {"tda": KEYS * classes * dim / products}
    score = max(2 * dim / bandwidth, classes * dim / products)
    return [1e6 * one for one in (score, *(read.get(m, product.get(m, 0)) for m in METHODS))]


def costs(names: list[str], rounds: int, longest: int) -> Table:
    bandwidth, products = machine()
    load = os.getloadavg()[0]
    title = (
        f"µs an item, floor in brackets; one thread reads {bandwidth / 1e9:.0f} GB/s and does "
        f"{products / 1e9:.0f} G multiply-adds/s; load {load:.1f}"
    )
    table = Table("T", "C", "D", "scores", *names, title=title, title_justify="left")
    points = [(n, CLASSES, DIM) for n in (1_000, 10_000, 100_000, longest)]
    points += [(ITEMS, n, DIM) for n in (10, 1_000, 10_000)]
    points += [(ITEMS, CLASSES, n) for n in (256, 768, 1024)]
    for items, classes, dim in points:
        few = 1 if items > 10 * ITEMS else rounds
        data = stream(items, classes, 1, dim)
        took = [scored(items, classes, dim, few)]
        took += [microseconds(name, data, few) for name in names]
        least = dict(zip(("", *METHODS), floors(classes, dim, bandwidth, products), strict=True))
        cells = [
            f"{shown(one)} ({shown(least[name])})" if least.get(name) else shown(one)
            for name, one in zip(("", *names), took, strict=True)
        ]
        table.add_row(f"{items:,}", f"{classes:,}", f"{dim:,}", *cells)
    return table


def replay(method: str, folder: Path) -> None:
    """Run on all feature files, in this process."""
    run = simulation(folder)
    noise = StreamSettings().noise if method == "zs-clip" else "gaussian"
    run(method, id_set="cifar10", ood_set="svhn", ood_fill="cap", noise=noise)
    print(peak_memory())


def memory(names: list[str], rows: tuple[int, ...]) -> Table:
    table = Table("rows", "MiB of features", *names, title="MiB at most", title_justify="left")
    for count in rows:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), "cifar10", count // 2, 10)
            write(Path(folder), "svhn", count // 2)
            write(Path(folder), "noise-gaussian", count // 8, kind="noise")
            command = [sys.executable, __file__, "--replay", folder, "--method"]
            peaks = [
                subprocess.run([*command, name], check=True, capture_output=True, text=True).stdout
                for name in names
            ]
        table.add_row(
            f"{count:,}", f"{count * 1024 / 2**20:,.0f}", *(f"{float(one):,.0f}" for one in peaks)
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", action="append", help="may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--long", type=int, default=1_000_000, help="items of the longest stream")
    parser.add_argument("--replay", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.method or list(METHODS)
    if given.replay:
        replay(names[0], given.replay)
        return
    Console(width=120).print(costs(names, given.rounds, given.long))
    Console(width=120).print(memory(names[:3], (20_000, 200_000, given.long)))


if __name__ == "__main__":
    main()
