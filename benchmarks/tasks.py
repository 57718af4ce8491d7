"""The tasks that beside.py times: `tasks.py TASK FOLDER` prints the seconds and MiB of one.

They run in the tree that PYTHONPATH names, which may be an older one: only what both have is used.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

DIM = 512


def pairs(folder: Path) -> float:
    """The paper's 44 pairs at 50 %, ZS-CLIP and AdaND, in process."""
    from zsntta_cli.datasets import CATALOGUE, partners

    run = simulation(folder / "pairs")
    started = time.perf_counter()
    for name in (n for n, e in CATALOGUE.items() if e.role == "id" and len(e.partners) == 4):
        if (folder / "pairs" / "made" / f"{name}.h5").exists():
            run("zs-clip", "adand", id_set=name, ood_set=list(partners(name)))
    return time.perf_counter() - started


def grid(folder: Path, jobs: int) -> float:
    """20 runs: two methods on one pair, ten seeds."""
    run = simulation(folder / "one")
    started = time.perf_counter()
    run("zs-clip", "adand", id_set="cifar10", ood_set="svhn", seed=range(10), jobs=jobs)
    return time.perf_counter() - started


def heavy(folder: Path, jobs: int) -> float:
    """20 runs: two methods that look at all 200 classes, one pair, ten seeds."""
    run = simulation(folder / "pairs")
    started = time.perf_counter()
    run("cull", "tda", id_set="cub200", ood_set="sun", seed=range(10), jobs=jobs)
    return time.perf_counter() - started


def ratios(folder: Path, jobs: int) -> float:
    """60 runs: three methods on one pair, four ratios, five seeds."""
    run, methods = simulation(folder / "one"), ("zs-clip", "adand", "tda")
    pair = {"id_set": "cifar10", "ood_set": "svhn"}
    started = time.perf_counter()
    run(*methods, **pair, seed=range(5), ratio=[0.2, 0.4, 0.6, 0.8], jobs=jobs)
    return time.perf_counter() - started


def imagenet(folder: Path, jobs: int) -> float:
    """40 runs: two methods on ImageNet's four pairs, five seeds."""
    from zsntta_cli.datasets import partners

    run, others = simulation(folder / "pairs"), list(partners("imagenet"))
    started = time.perf_counter()
    run("zs-clip", "adand", id_set="imagenet", ood_set=others, seed=range(5), jobs=jobs)
    return time.perf_counter() - started


def long_stream(folder: Path, method: str) -> float:
    """A stream of a million items."""
    run = simulation(folder / "long")
    started = time.perf_counter()
    run(method, id_set="cifar10", ood_set="svhn", ratio=0.55, noise="gaussian")
    return time.perf_counter() - started


def tda(_folder: Path, classes: int) -> float:
    """TDA on 2,000 items; return the milliseconds of one as if they were seconds."""
    from threadpoolctl import threadpool_limits

    from zsntta_cli.methods import METHODS
    from zsntta_cli.methods.base import StreamData
    from zsntta_cli.settings import ThresholdSettings

    rng, count = np.random.default_rng(0), 2000
    text = rng.normal(size=(classes, DIM)).astype(np.float32)
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    features = 3 * text[rng.integers(classes, size=count)] + rng.normal(size=(count, DIM)) / 4
    rows = features.astype(np.float32)
    data = StreamData.scored(rows, text, 100.0)
    method = METHODS["tda"]
    with threadpool_limits(1, "blas"):
        method(data, method.settings(), ThresholdSettings()).push(data.part(slice(20)))
        started = time.perf_counter()
        method(data, method.settings(), ThresholdSettings()).push(data)
        return (time.perf_counter() - started) / count


def draw(_folder: Path) -> float:
    """3,000 built-in pictures, read by two threads as in an extraction."""
    from zsntta_cli import datasets
    from zsntta_cli.encoders.batches import load_batches

    images = datasets.load_images("shapes", Path("data"))
    batches = [range(start, start + 100) for start in range(0, 3000, 100)]
    started = time.perf_counter()
    for _ in load_batches(images, batches, np.asarray, 2, False):
        pass
    return time.perf_counter() - started


def simulation(root: Path) -> Callable[..., object]:
    from functools import partial

    import zsntta_cli

    tree = Path(zsntta_cli.__file__).parents[1].name
    store = root / f"kept-{tree}.sqlite"  # an older commit cannot read a newer store
    return partial(
        zsntta_cli.simulate, encoder="made", features_dir=root, records=store, fresh=True
    )


TASKS: dict[str, Callable[[Path], float]] = {
    "44 pairs, ZS-CLIP and AdaND": pairs,
    "20 runs, 1 job": lambda folder: grid(folder, 1),
    "20 runs, 2 jobs": lambda folder: grid(folder, 2),
    "20 runs, cull and TDA, 200 classes, 1 job": lambda folder: heavy(folder, 1),
    "20 runs, cull and TDA, 200 classes, 2 jobs": lambda folder: heavy(folder, 2),
    "60 runs, TDA too, 1 job": lambda folder: ratios(folder, 1),
    "60 runs, TDA too, 2 jobs": lambda folder: ratios(folder, 2),
    "40 runs on ImageNet, 1 job": lambda folder: imagenet(folder, 1),
    "40 runs on ImageNet, 2 jobs": lambda folder: imagenet(folder, 2),
    "1,000,000 items, ZS-CLIP": lambda folder: long_stream(folder, "zs-clip"),
    "1,000,000 items, AdaND": lambda folder: long_stream(folder, "adand"),
    "TDA, an item of 1,000 classes": lambda folder: tda(folder, 1000),
    "TDA, an item of 10,000 classes": lambda folder: tda(folder, 10_000),
    "3,000 pictures drawn": draw,
}


def peak_memory() -> float:
    """The peak MiB of this process; `ru_maxrss` starts with its parent's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


if __name__ == "__main__":
    print(TASKS[sys.argv[1]](Path(sys.argv[2])), peak_memory())
