"""The same features on any number of threads of a machine."""

import os
import subprocess

import pytest
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
