"""The time that `cull` takes per item, compared with ZS-CLIP, in one process with one BLAS thread.

    python benchmarks/cull.py

It prints the microseconds per item of a replay, whose zero-shot scores are cached (median of five
runs), and of pushing a single item, which also has to be scored (alternating with ZS-CLIP, 3,000
items). Features are random, with 512 dimensions. They lack a real stream's structure, but the work
is the same.
"""

import time
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from zsntta_cli import Detector
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import StreamData
from zsntta_cli.settings import ThresholdSettings

ITEMS, DIM = 8_000, 512
PAIR = ("zs-clip", "cull")


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def stream(classes: int) -> StreamData:
    generator = np.random.default_rng(0)
    features = unit(generator.standard_normal((ITEMS, DIM), np.float32))
    text = unit(generator.standard_normal((classes, DIM), np.float32))
    generic = unit(generator.standard_normal((300, DIM), np.float32)).mean(0)
    return StreamData.scored(features, text, 100.0, generic=generic, is_level_known=True)


def replayed(method: str, data: StreamData) -> float:
    """The microseconds per item of a replay."""
    chosen, seconds = METHODS[method], []
    for _ in range(5):
        started = time.process_time()
        chosen(data, chosen.settings(), ThresholdSettings()).push(data)
        seconds.append(time.process_time() - started)
    return 1e6 * median(seconds) / ITEMS


def pushed(data: StreamData, items: int = 3_000) -> list[float]:
    """The mean microseconds of pushing a single item, for each method."""
    known: dict[str, Any] = {"generic": data.generic, "is_level_known": True}
    text = data.text_features
    detectors = [Detector(text, 100.0, method=name, **known) for name in PAIR]
    seconds = [0.0, 0.0]
    for row in np.split(data.image_features[:items], items):
        for i, detector in enumerate(detectors):
            started = time.process_time()
            detector.update(row)
            seconds[i] += time.process_time() - started
    return [1e6 * total / items for total in seconds]


def main() -> None:
    print("| microseconds an item | ZS-CLIP | cull |\n|---|---:|---:|")
    for classes in (24, 1_000):
        data = stream(classes)
        with threadpool_limits(1, "blas"):  # as in `simulate`
            cells = " | ".join(f"{replayed(method, data):.2f}" for method in PAIR)
            singles = " | ".join(f"{mean:.0f}" for mean in pushed(data))
        print(f"| replay, {classes:,} classes | {cells} |")
        print(f"| single pushes, {classes:,} classes | {singles} |", flush=True)


if __name__ == "__main__":
    main()
