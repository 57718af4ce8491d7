"""The time per item of every method that decides from cached features, as a table.

    python benchmarks/methods.py [--method NAME …] [--classes 10,100,1000] [--rounds 5]

Features are random; the work is the same as for real ones unless it depends on what they show. A
value is the processor's microseconds per item, the median of some rounds on one BLAS thread,
without the zero-shot scores, which are computed before.
"""

import argparse
import os
import statistics
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from zsntta_cli.methods import METHODS, WORDS, check_method
from zsntta_cli.methods.base import StreamData
from zsntta_cli.simulation.runs import build_run

DIM = 512
INJECT_EVERY = 9  # one injected item after every eight


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", action="append", help="may be repeated; all by default")
    parser.add_argument("--classes", default="10,100,1000")
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def rows(generator: np.random.Generator, count: int, dim: int = DIM) -> NDArray[np.float32]:
    """Rows (count, dim) of unit norm."""
    made = generator.standard_normal((count, dim), np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def stream(items: int, classes: int, words: int, dim: int = DIM) -> StreamData:
    """A stream whose items are near a class, so that not all of them are noise."""
    generator = np.random.default_rng(0)
    text = rows(generator, classes, dim)
    images = 10 * (rows(generator, items, dim) + 0.3 * text[np.arange(items) % classes])
    injected = np.arange(items) % INJECT_EVERY == INJECT_EVERY - 1
    more_text = rows(generator, words, dim)
    return StreamData.scored(images, text, 100.0, injected, more_text=more_text)


def microseconds(method: str, data: StreamData, rounds: int) -> float:
    """The time of an item. The first round, which may compile, does not count."""
    settings = build_run(method, "", "", None, "a photo of a {}.")
    if METHODS[method].needs != WORDS:
        data = replace(data, more_text=None)
    chosen, times = METHODS[method], []  # before the limit, because it may load a BLAS of its own
    with threadpool_limits(1, user_api="blas"):
        for _ in range(rounds + 1):
            started = time.process_time()
            chosen(data, settings.options, settings.threshold).push(data)
            times.append(time.process_time() - started)
    return statistics.median(times[1:]) / len(data) * 1e6


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    given = options()
    for name in given.method or ():
        check_method(name)
    names = given.method or [n for n, m in METHODS.items() if m.decides and not m.live]
    counts = [int(one) for one in given.classes.split(",")]
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    title = f"µs an item of {given.items:,}, D = {DIM}, {os.cpu_count()} cores, load {load}"
    table = Table("method", "needs", min_width=len(title), title=title, title_justify="left")
    for count in counts:
        table.add_column(f"C = {count:,}", justify="right")
    streams = [stream(given.items, count, given.words) for count in counts]
    for name in names:
        cells = [shown(microseconds(name, data, given.rounds)) for data in streams]
        table.add_row(name, METHODS[name].needs, *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
