import os
from multiprocessing import forkserver

import numpy as np
import pytest
from feature_files import write_features

from torture.tool import ROOT, ask
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET, NOISE

PROMPT = "a photo of a {}."
IMAGES, DIM, NAMES = 60, 8, ("cat", "dog", "ox")


def make_sets(root, images=IMAGES, noise=IMAGES) -> None:
    """An ID set, an OOD set and a noise pool, by an encoder that nobody knows."""
    generator = np.random.default_rng(0)
    text = np.linalg.qr(generator.standard_normal((DIM, 3)))[0].T.astype(np.float32)
    for name, size in (("pets", images), ("sky", images), ("noise-gaussian", noise)):
        labels, is_set = np.arange(size, dtype=np.int32) % 3, not name.startswith("noise")
        rows = generator.standard_normal((size, DIM), np.float32)
        rows += 8 * text[labels] * (name == "pets")
        write_features(
            root / "made" / f"{name}.h5", kind=DATASET if is_set else NOISE, name=name,
            encoder={"model": "made-up", "logit_scale": 20.0}, source={"images": size},
            blocks=[rows.astype(np.float16)],
            labels=labels if is_set else np.full(size, -1, np.int32),
            sample_ids=[f"{i}.png" for i in range(size)], class_names=NAMES if is_set else (),
            texts=[Text(PROMPT, text)] if is_set else (),
        )  # fmt: skip


@pytest.fixture(scope="module")
def zsntta():
    """Ask the command line; it is imported once, by a process that forks for each question."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'tests'}")
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        forkserver.ensure_running()
    return ask


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with features; examples of one test share it."""
    folder = tmp_path_factory.mktemp("place")
    make_sets(folder / "features")
    return folder
