"""The time of replays from cached features (`make bench`), on random features of the true sizes.

Each line is the median of several runs. The plain loop (tests/reference/adand.py) is timed on a
shorter stream, and its time is extrapolated to the same number of items.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reference import adand as reference

from zsntta_cli import Detector
from zsntta_cli.cache import store
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors import adand, cull, zs_clip
from zsntta_cli.methods.method import Method
from zsntta_cli.simulation.runs import RunSettings, build_run

PROMPT = "a photo of a {}."
DIM = 512
# Sizes and partners of the benchmark (the paper, appendix on data sets).
ID_SETS = {
    "cifar10": (10_000, 10), "cifar100": (10_000, 100), "cub200": (11_788, 200),
    "cars196": (16_185, 196), "food101": (25_250, 101), "pets37": (7_349, 37),
    "imagenet": (50_000, 1000), "imagenet-sketch": (50_889, 1000), "imagenet-a": (7_500, 200),
    "imagenet-v2": (10_000, 1000), "imagenet-r": (30_000, 200),
}  # fmt: skip
OOD_SETS = {
    "svhn": 26_032, "lsun": 10_000, "texture": 5_640, "places": 10_000, "inaturalist": 10_000,
    "sun": 10_000,
}  # fmt: skip


def partners(id_set: str) -> tuple[str, ...]:
    if id_set.startswith("cifar"):
        return ("svhn", "lsun", "texture", "places")
    return ("inaturalist", "sun", "texture", "places")


def random_features(generator: np.random.Generator, rows: int) -> np.ndarray:
    return (generator.standard_normal((rows, DIM), np.float32) * (10 / DIM**0.5)).astype(np.float16)


def write_set(root: Path, name: str, rows: int, classes: int = 0) -> None:
    generator = np.random.default_rng(len(name) + rows)
    labels = np.arange(rows) % classes if classes else np.full(rows, -1)
    text = generator.standard_normal((classes, DIM), np.float32)
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    path, encoder = root / "bench" / f"{name}.h5", {"model": "bench", "logit_scale": 100.0}
    texts = {PROMPT: Text(PROMPT, text)} if classes else {}
    made = Features(
        path, DATASET, name, encoder, {}, random_features(generator, rows),
        labels.astype(np.int32), tuple(f"class {i}" for i in range(classes)), texts,
    )  # fmt: skip
    store.write(made, [str(i) for i in range(rows)])


def median_time(work: Callable[[], object], runs: int = 7) -> float:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def stream(items: int, classes: int = 10) -> StreamData:
    generator = np.random.default_rng(0)
    features = random_features(generator, items).astype(np.float32)
    text = generator.standard_normal((classes, DIM), np.float32)
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    injected = np.arange(items) % 9 == 8
    return StreamData.scored(features, text, 100.0, injected)  # scores are not part of the replay


def pushed(method: type[Method], data: StreamData, run: RunSettings) -> Decisions:
    return method(data, run.options, run.threshold).push(data)


def shown(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"


def in_process(table: Table) -> None:
    run = build_run("adand", "", "", None, PROMPT)
    zs = build_run("zs-clip", "", "", None, PROMPT)
    short, items = stream(1_500), 22_500
    weight, bias = np.zeros((2, DIM), np.float32), np.zeros(2, np.float32)
    plain = median_time(lambda: reference.adand(short, run, weight, bias), 3) / 1_500 * items
    thresholds = partial(map, reference.PlainThreshold(zs.threshold), short.noise_score)
    plain_zs = median_time(lambda: [*thresholds()], 3) / 1_500 * items
    data = stream(items)
    pushed(adand.AdaND, data, run)
    ours = median_time(lambda: pushed(adand.AdaND, data, run))
    table.add_row("AdaND, 22,500 x 512, in process", shown(ours), "80 ms", f"{plain / ours:,.0f}")
    ours = median_time(lambda: pushed(zs_clip.ZsClip, data, zs))
    table.add_row("ZS-CLIP, 22,500, in process", shown(ours), "45 ms", f"{plain_zs / ours:,.0f}")
    for count in (10_000, 100_000, 1_000_000):
        data = stream(count)
        seconds = median_time(partial(pushed, adand.AdaND, data, run), 3)
        table.add_row(f"AdaND, microseconds an item of {count:,}", f"{seconds / count * 1e6:.2f}")


def cull_rows(table: Table) -> None:
    """A real stream has structure that random features lack, but the work is the same."""
    run = build_run("cull", "", "", None, PROMPT)
    for classes, budget in ((24, "5"), (1_000, "8")):
        data = stream(8_000, classes)
        with threadpool_limits(1, "blas"):  # as in `simulate`; SciPy's BLAS is loaded by now
            seconds = median_time(partial(pushed, cull.Cull, data, run), 5)
        name = f"cull, microseconds an item, {classes:,} classes"
        table.add_row(name, f"{seconds / 8_000 * 1e6:.1f}", budget)


def one_by_one(table: Table) -> None:
    """One feature at a time, as in a service: its scores, the decision and the update."""
    for method in ("zs-clip", "adand", "cull"):
        data = stream(3_000, 1_000)
        detector = Detector(data.text_features, 100.0, method=method)
        rows = np.split(data.image_features, len(data))
        started = time.perf_counter()
        for row in rows:
            detector.update(row)
        seconds = (time.perf_counter() - started) / len(rows)
        name = f"{method} one by one, 1,000 classes, microseconds"
        table.add_row(name, f"{seconds * 1e6:.0f}", "300")


def command(root: Path, *arguments: str) -> None:
    zsntta = Path(sys.executable).with_name("zsntta")
    options = ["--encoder", "bench", "--features-dir", str(root), "--format", "json", "--fresh"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(  # with bytecode, as in an installed package
        [zsntta, "simulate", *arguments, *options], check=True, capture_output=True,
        env=environment,
    )  # fmt: skip


def whole_commands(table: Table, root: Path) -> None:
    write_set(root, "small", 10_000, 10)
    write_set(root, "outside", 10_000)
    one = ("--method", "adand", "--id", "small", "--ood", "outside")
    table.add_row(
        "zsntta simulate, 22,500 items", shown(median_time(lambda: command(root, *one))), "1 s"
    )
    write_set(root, "big", 20_000, 10)
    write_set(root, "big-outside", 20_000)
    grid = ["--method", "zs-clip", "--method", "adand", "--method", "tda", "--id", "big",
            "--ood", "big-outside", "--set", "ood-fill=cap"]  # fmt: skip
    grid += [x for r in ("0", "0.25", "0.5", "0.75") for x in ("--ratio", r)]
    grid += [x for s in range(5) for x in ("--seed", str(s))]
    table.add_row(
        "4 ratios x 5 seeds x 3 methods", shown(median_time(lambda: command(root, *grid), 3)), "5 s"
    )


def all_pairs(table: Table, root: Path) -> None:
    for name, (rows, classes) in ID_SETS.items():
        write_set(root, name, rows, classes)
    for name, rows in OOD_SETS.items():
        write_set(root, name, rows)

    def run() -> None:
        for id_set in ID_SETS:
            oods = [x for ood in partners(id_set) for x in ("--ood", ood)]
            command(root, "--method", "zs-clip", "--method", "adand", "--id", id_set, *oods)

    write_set(root, "noise-gaussian", 12_500)
    seconds = median_time(run, 1)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    table.add_row("44 pairs at 50 %, two methods, 11 commands", shown(seconds), "40 s")
    table.add_row("  its peak memory", f"{peak:.2f} GiB", "2 GiB")


def main() -> None:
    table = Table(title=f"Replays, {os.cpu_count()} cores", title_justify="left")
    for head in ("work", "time", "budget", "x plain loop"):
        table.add_column(head, justify="left" if head == "work" else "right")
    with tempfile.TemporaryDirectory() as folder:  # first: a child counts its parent's memory
        all_pairs(table, Path(folder))
        whole_commands(table, Path(folder))
    in_process(table)
    cull_rows(table)
    one_by_one(table)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
