import json
import os
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from torture.tool import TALLY, Zsntta
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, NOISE, Text

PROMPT = "a photo of a {}."
IMAGES, DIM, NAMES = 60, 8, ("cat", "dog", "ox")


def make_sets(root) -> None:
    """An ID set, an OOD set and a noise pool, by an encoder that nobody knows."""
    generator = np.random.default_rng(0)
    text = np.linalg.qr(generator.standard_normal((DIM, 3)))[0].T.astype(np.float32)
    labels = np.arange(IMAGES, dtype=np.int32) % 3
    for name in ("pets", "sky", "noise-gaussian"):
        rows = generator.standard_normal((IMAGES, DIM)) + 8 * text[labels] * (name == "pets")
        is_set = not name.startswith("noise")
        hdf5.write_features(
            root / "made" / f"{name}.h5", kind=DATASET if is_set else NOISE, name=name,
            encoder={"model": "made-up", "logit_scale": 20.0}, source={"images": IMAGES},
            blocks=[rows.astype(np.float16)],
            labels=labels if is_set else np.full(IMAGES, -1, np.int32),
            sample_ids=[f"{i}.png" for i in range(IMAGES)], class_names=NAMES if is_set else (),
            texts=[Text(PROMPT, text)] if is_set else (),
        )  # fmt: skip


@pytest.fixture(scope="module")
def zsntta():
    server = Zsntta()
    yield server
    server.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with features; examples of one test share it."""
    folder = tmp_path_factory.mktemp("place")
    make_sets(folder / "features")
    return folder


def pytest_configure(config):
    """Where the counts of all workers go: they inherit the variable."""
    if not hasattr(config, "workerinput") and TALLY not in os.environ:
        descriptor, os.environ[TALLY] = tempfile.mkstemp(prefix="zsntta-tally-")
        os.close(descriptor)


def pytest_terminal_summary(terminalreporter):
    """What was tried how often, and what of it was bad."""
    path = Path(os.environ[TALLY])
    tried, bad = Counter(), Counter()
    for line in path.read_text().splitlines():
        what, times, failures = json.loads(line)
        tried[what] += times
        bad[what] += failures
    if tried:
        terminalreporter.section("tried, bad")
    for what in sorted(tried):
        terminalreporter.write_line(f"{tried[what]:>10,} {bad[what]:>5,}  {what}")


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        Path(os.environ.pop(TALLY, "")).unlink(missing_ok=True)
