"""Replays, figures, reports and `Detector` in the small installation of docs/questions.md."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMPORTED = {  # by what is installed, where it has another name
    "open-clip-torch": "open_clip", "pyyaml": "yaml", "scikit-learn": "sklearn",
    "huggingface-hub": "huggingface_hub",
}  # fmt: skip
BROUGHT = {"pillow"}  # by Matplotlib
WITHOUT = """
import sys
class LeftOut:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {left_out!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, LeftOut())
"""
ONLINE = """
import numpy as np
from zsntta_cli import Detector
detector = Detector(np.eye(3, 8, dtype=np.float32), 100.0)
print(len(detector.update(np.random.default_rng(0).normal(size=(70, 8)))))
"""


@pytest.fixture
def run(features, tmp_path):
    """Run a program, or the command line, without what the small installation does not name."""
    page = (ROOT / "docs/questions.md").read_text("utf-8")
    [named] = re.findall(r"pip install --no-deps \.\npip install (.*)", page)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {re.split("[<>=]", line)[0].replace("_", "-") for line in project["dependencies"]}
    left_out = {IMPORTED.get(name, name) for name in names - {*named.split()} - BROUGHT}
    assert {"torch", "torchvision", "timm"} <= left_out

    def run(*words, program="from zsntta_cli.__main__ import main\nmain()"):
        text = f"{WITHOUT.format(left_out=left_out)}\nsys.argv[1:] = {list(map(str, words))}\n"
        return subprocess.run(
            [sys.executable, "-c", text + program], cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    return run


def test_streams_are_replayed_drawn_and_reported(run, features):
    kept = ("--records", "kept.sqlite", "--features-dir", features)
    sets = ("--encoder", "made", "--id", "pets", "--ood", "sky")
    done = run("simulate", "--method", "zs-clip,adand,cull,tda", *sets, *kept)
    assert done.returncode == 0, done.stderr
    assert "cull" in done.stdout
    for words in (("report", "--output", "page.html"), ("plot", "means", "--output", "means.svg")):
        done = run(*words, *kept[:2])
        assert done.returncode == 0, done.stderr


def test_features_are_judged_and_what_needs_torch_says_so(run):
    done = run(program=ONLINE)
    assert (done.stdout, done.stderr) == ("70\n", "")
    done = run("extract", "--model", "tiny", "--dataset", "digits")
    assert (done.returncode, done.stdout) == (1, "")
    assert " is not installed: type pip install zsntta" in done.stderr
