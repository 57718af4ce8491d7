"""What `dde` costs an item, on random features: it depends on how many classes and words there are.

    python benchmarks/dde.py --classes 1000 --words 10000 --items 6000

Prints seconds for 60,000 items at the rate of each of the presets' Gaussians (with and without
those of second choices), a table row each: medians of --rounds.
"""

import argparse
import statistics
import time

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import MoreText, Pool, StreamData
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings

STREAM = 60_000  # items: ImageNet's validation images and a fifth of noise
DIM = 512


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=6_000)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def stream(classes: int, words: int, items: int) -> StreamData:
    """Images near a text, six of ten near a class, all others near a word."""
    generator = np.random.default_rng(0)

    def rows(count: int) -> NDArray[np.float32]:
        return unit(generator.normal(size=(count, DIM))).astype(np.float32)

    text = rows(classes + words)
    is_id = generator.random(items) < 0.6
    near = np.where(is_id, generator.integers(classes, size=items),
                    classes + generator.integers(words, size=items))  # fmt: skip
    images = (0.35 * text[near] + 0.6 * rows(items)).astype(np.float32)
    pool = Pool.scored(images, text[:classes], 100.0).beside(MoreText(text[classes:], (words,)))
    return StreamData(pool, np.arange(items), np.zeros(items, bool))


def seconds(data: StreamData, exclusion: float, rounds: int) -> float:
    """Seconds of the whole stream, the median."""
    method = METHODS["dde"]
    own = method.settings(dde_exclusion=exclusion)
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        method(data, own, ThresholdSettings()).push(data)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def main() -> None:
    given = options()
    data = stream(given.classes, given.words, given.items)
    baseline = seconds(data, 0.0, given.rounds)
    print(f"{given.classes:,} classes, {given.words:,} words, {given.items:,} items of {DIM} dims")
    print("| β | µs an item | 60,000 items | ratio |\n|---|---:|---:|---:|")
    for exclusion in (0.0, 0.5):
        taken = baseline if exclusion == 0 else seconds(data, exclusion, given.rounds)
        each = taken / given.items
        whole, ratio = STREAM * each, taken / baseline
        print(f"| {exclusion} | {1e6 * each:.0f} | {whole:.0f} s | {ratio:.2f} |")


if __name__ == "__main__":
    main()
