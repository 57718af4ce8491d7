"""`zsntta cache export` as a user has it: there and back, pipes, what is refused."""

import subprocess

import numpy as np
from made import ZSNTTA, fails

from zsntta_cli.cache import store

BACK = ("--encoder", "mine", "--features-dir", "back")


def test_there_and_back(cached, tmp_path):
    result = cached("cache", "export", "shapes")
    assert result.exit_code == 0, result.output
    name, _, says = result.stdout.strip().partition(": ")
    own = store.read(tmp_path / "features/tiny/shapes.h5")
    assert says == f"{len(own):,} features of {own.dim} dims"
    result = cached("cache", "import", "shapes", "--features", name, *BACK)
    assert result.exit_code == 0, result.output
    assert f"{name} says that its features are of tiny" in result.stderr
    back = store.read(tmp_path / "back/mine/shapes.h5")
    assert (back.digest, back.class_names) == (own.digest, own.class_names)
    assert back.identity == own.identity
    fails(cached("cache", "export", "shapes"), "is there already: --overwrite")
    assert cached("cache", "export", "shapes", "--overwrite").exit_code == 0
    fails(cached("cache", "export", "cats"), "no features of 'cats'")


def test_stdout_gets_the_file_alone(cached, tmp_path):
    words = [ZSNTTA, "cache", "export", "shapes", "--output", "/dev/stdout"]
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, check=True)
    (tmp_path / "s.npz").write_bytes(done.stdout)
    with np.load(tmp_path / "s.npz") as arrays:
        assert arrays["labels"].shape == arrays["image_features"].shape[:1]
