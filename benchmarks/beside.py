"""The waiting time of users at an older commit and in the working tree, measured alternately.

    python benchmarks/beside.py --old COMMIT [--times 5] [--only TEXT] [--work FOLDER]

Times are medians. On a busy machine trust only the ratios; the title has the machine's load. The
feature files are random, have the sizes of the paper's sets and 512 dimensions, and are written to
FOLDER (3 GB; by default a temporary one).
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from tasks import DIM, TASKS

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets import CATALOGUE, partners
from zsntta_cli.datasets.names import DATASET, NOISE

HERE = Path(__file__).parent
ENCODER = {"model": "ViT-B-16", "pretrained": "openai", "logit_scale": 100.0, "precision": "fp32"}
SIMULATE = ("simulate", "--encoder", "made", "--id", "cifar10", "--ood", "svhn", "--fresh")
COMMANDS = {
    "zsntta --help": ("--help",),
    "zsntta simulate, 22,500 items, ZS-CLIP": (*SIMULATE, "--method", "zs-clip"),
    "zsntta simulate, 22,500 items, AdaND": (*SIMULATE, "--method", "adand"),
}


def write(root: Path, name: str, count: int, classes: int = 0, kind: str = DATASET) -> None:
    """Random features: ID images are near their class text, others anywhere."""
    path = root / "made" / f"{name}.h5"
    if path.exists():
        return
    rng = np.random.default_rng(sum(name.encode()))
    text = rng.normal(size=(max(classes, 1), DIM)).astype(np.float32)
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    labels = rng.integers(0, max(classes, 1), count).astype(np.int32)
    noise = 0.4 * rng.normal(size=(5000, DIM)).astype(np.float32)

    blocks = []
    for start in range(0, count, 20_000):
        some = labels[start : start + 20_000]
        drawn = noise[rng.integers(5000, size=len(some))]
        drawn = drawn + noise[rng.integers(5000, size=len(some))] / 2
        blocks.append((drawn + (2.6 * text[some] if classes else 0)).astype(np.float16))
    prompt = "a photo of a {}."
    made = Features(
        path, kind, name, ENCODER, {}, np.concatenate(blocks),
        labels if classes else np.full(count, -1, np.int32),
        tuple(f"class {i}" for i in range(classes)),
        {prompt: Text(prompt, text)} if classes else {},
    )  # fmt: skip
    store.write(made, [f"{name}/{i}" for i in range(count)])


def make_features(work: Path) -> None:
    for name, entry in CATALOGUE.items():
        if entry.role == "id" and len(entry.partners) == 4 and name != "shapes":
            write(work / "pairs", name, entry.images, entry.classes)
            for other in partners(name):
                write(work / "pairs", other, CATALOGUE[other].images)
    write(work / "pairs", "noise-gaussian", 12_500, kind=NOISE)
    sizes = {"one": (10_000, 10_000, 2_500), "long": (400_000, 489_000, 111_200)}
    for folder, (ids, oods, noises) in sizes.items():
        write(work / folder, "cifar10", ids, 10)
        write(work / folder, "svhn", oods)
        write(work / folder, "noise-gaussian", noises, kind=NOISE)


def measure(tree: Path, task: str, work: Path) -> tuple[float, float]:
    """The seconds and the peak MiB (nan for a command) of a task in a tree."""
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(work / "pyc")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has bytecode
    if task in COMMANDS:
        given = [*COMMANDS[task]]
        if len(given) > 1:
            kept = work / f"kept-{tree.name}.sqlite"  # an older commit cannot read a newer store
            given += ["--features-dir", str(work / "one"), "--records", str(kept)]
        command = [sys.executable, "-m", "zsntta_cli", *given]
        started = time.perf_counter()
        # Not from this folder: the current one has priority over PYTHONPATH.
        subprocess.run(command, cwd=work, env=environment, check=True, capture_output=True)
        return time.perf_counter() - started, float("nan")
    command = [sys.executable, str(HERE / "tasks.py"), task, str(work)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


@contextlib.contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The files of a commit, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", commit], cwd=HERE.parent, check=True, capture_output=True
        ).stdout
        subprocess.run(["tar", "x", "-C", folder], input=archive, check=True)
        yield Path(folder)


def row(task: str, trees: list[Path], work: Path, times: int) -> list[str]:
    for tree in trees:  # so that it is compiled, and in memory
        measure(tree, task, work)
    taken = [[measure(tree, task, work) for tree in trees] for _ in range(times)]
    old, new = (statistics.median(one[i][0] for one in taken) for i in (0, 1))
    ratio = statistics.median(one[1][0] / one[0][0] for one in taken)
    memory = [statistics.median(one[i][1] for one in taken) for i in (0, 1)]
    unit, factor = ("ms", 1000) if max(old, new) < 1 else ("s", 1)
    shown = [f"{value * factor:.3g} {unit}" for value in (old, new)]
    return [task, *shown, f"{ratio:.2f}", *("-" if m != m else f"{m:,.0f}" for m in memory)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", required=True, help="a commit")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", default="", help="tasks whose names contain this")
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        work = given.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        make_features(work)
        trees = [stack.enter_context(checked_out(given.old)), HERE.parent]
        load = os.getloadavg()[0]
        table = Table("", given.old, "now", "now / old", "MiB", "MiB now")
        for task in (*COMMANDS, *TASKS):
            if given.only in task:
                table.add_row(*row(task, trees, work, given.times))
        table.title = (
            f"medians of {given.times}; load {load:.1f} before, {os.getloadavg()[0]:.1f} after"
        )
        Console().print(table)


if __name__ == "__main__":
    main()
