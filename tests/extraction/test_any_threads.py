"""The same features on any number of threads of a machine."""

import os
import subprocess

import numpy as np
import pytest
import torch
from feature_files import write_features
from made import TINY, ZSNTTA

from zsntta_cli.cache import store

SETS = ("shapes.h5", "glyphs.h5", "noise-gaussian.h5")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders of features made by processes with one, two and four threads."""
    folders = {}
    for threads in ("1", "2", "4"):
        folder = tmp_path_factory.mktemp(f"threads-{threads}")
        asked = ("--dataset", "shapes", "--dataset", "glyphs", "--limit", "200", "--prompt",
                 "clip-80")  # fmt: skip
        subprocess.run(
            [ZSNTTA, "extract", *TINY, *asked], cwd=folder, check=True, capture_output=True,
            env={**os.environ, "OMP_NUM_THREADS": threads},
        )  # fmt: skip
        folders[threads] = folder / "features" / "tiny"
    return folders


@pytest.mark.parametrize("threads", ["2", "4"])
def test_features_are_the_same_to_the_bit(made, threads):
    for name in SETS:
        one, more = (store.read(made[n] / name) for n in ("1", threads))
        assert one.identity["threads"] == 1
        assert one.image_features[:].tobytes() == more.image_features[:].tobytes()
        assert one.digest == more.digest
        assert list(one.texts) == list(more.texts)
        for prompt, text in one.texts.items():
            assert text.features.tobytes() == more.texts[prompt].features.tobytes(), prompt


def test_bytes_of_files_differ_in_what_says_the_threads_alone(made, tmp_path):
    """Written again without the facts of the process, two files are one byte by byte."""
    contents = []
    for threads in ("1", "2"):
        features = store.read(made[threads] / "shapes.h5")
        path = tmp_path / threads / "shapes.h5"
        path.parent.mkdir()
        write_features(
            path, kind="dataset", name="shapes", encoder={**features.identity, "threads": None},
            source=features.source, blocks=[features.image_features[:]], labels=features.labels,
            sample_ids=store.read_sample_ids(features.path), class_names=features.class_names,
            texts=features.texts.values(), machine={}, created="2026-01-01T00:00:00+00:00",
        )  # fmt: skip
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]


def test_the_process_keeps_its_threads(tiny):
    before = torch.get_num_threads()
    assert np.isfinite(tiny.encode_texts(["a cat"])).all()
    assert torch.get_num_threads() == before
