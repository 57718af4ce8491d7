"""Whatever works for long is killed (`kill -9`) while it works, and run again: the same bytes."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from made import TINY
from torture.conftest import make_sets
from torture.tool import LONG, SETS

ROOT = Path(__file__).parents[2]
UNLIKE = ("created", "machine")  # in two files of the same features
KILLS = 30 if LONG else 3
EXTRACT = ("extract", "--dataset=shapes", "--limit=300", "--batch-size=4", "--no-partners", *TINY)
STAGES = ("--set=warmup=1", "--set=update-every=4")
COMMANDS = {
    "simulate": [("simulate", "--method=adand,cull,tda,oga,dmn", *SETS, "--seed=0-9", *STAGES,
                  "--output=out.csv")],
    "cache import": [("cache", "import", "new", "--features=in.npy", "--encoder=mine",
                      "--overwrite")],
    "extract": [EXTRACT],
    "extract --part": [(*EXTRACT[:4], *TINY, "--part=1/2"), (*EXTRACT[:4], *TINY, "--part=2/2"),
                       ("cache", "join", "shapes")],
    "detect": [("detect", "photos", "--classes=cat,dog,ox", *TINY, "--output=out.csv")],
    "live": [("simulate", "--method=tent", "--id=shapes", "--ood=glyphs", "--limit=48", *TINY,
              "--set=batch-size=8", "--seed=0,1", "--device=cpu")],
}  # fmt: skip


@pytest.fixture(scope="module")
def prepared(cache, tmp_path_factory):
    """A folder in which each of the commands has something to do."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("kills")
    make_sets(folder / "features", images=600)
    for name in ("shapes", "glyphs", "noise-gaussian"):
        shutil.copy(cache / "tiny" / f"{name}.h5", folder)
    generator = np.random.default_rng(0)
    np.save(folder / "in.npy", generator.standard_normal((40_000, 64), np.float32))
    (folder / "photos").mkdir()
    for i in range(60):
        Image.new("RGB", (16, 16), (4 * i, 90, 255 - 4 * i)).save(folder / "photos" / f"{i}.png")
    return folder


def start(words, folder):
    return subprocess.Popen(
        [sys.executable, "-m", "zsntta_cli", *words], cwd=folder, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
    )  # fmt: skip


def finish(commands, folder):
    """Let them end; how long they took."""
    begun = time.monotonic()
    for words in commands:
        process = start(words, folder)
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    return time.monotonic() - begun


def left_by(folder):
    """What a folder holds, but for times: arrays and attributes of features, runs, other files."""
    held = {}
    for path in sorted((folder / "features").rglob("*.h5")):
        with h5py.File(path) as file:
            items = [("", file)]
            file.visititems(lambda name, item, items=items: items.append((name, item)))
            for name, item in items:
                facts = {k: str(v) for k, v in item.attrs.items() if k not in UNLIKE}
                values = item[()].tobytes() if isinstance(item, h5py.Dataset) else b""
                held[str(path.relative_to(folder)), name] = facts, values
    if (folder / "features" / "records.sqlite").exists():
        finish([("records", "export", "--format=json", "--output=runs.json")], folder)
        runs = json.loads((folder / "runs.json").read_text())
        held["runs"] = sorted(
            json.dumps([run[part] for part in ("settings", "digests", "accuracies", "counts")])
            for run in runs
        )
    held["files"] = {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in (".lock", ".sqlite-wal", ".sqlite-shm")
    }
    held["out"] = [path.read_bytes() for path in folder.glob("out.csv")]
    return held


@pytest.mark.parametrize(
    "name",
    [name if name == "simulate" else pytest.param(name, marks=pytest.mark.slow)
     for name in COMMANDS],
)  # fmt: skip
def test_killed_and_run_again_it_leaves_the_same_bytes(prepared, tmp_path, name):
    commands, moments = COMMANDS[name], random.Random(0)
    folders = [tmp_path / "undisturbed", tmp_path / "killed"]
    for folder in folders:
        shutil.copytree(prepared, folder)
        if name == "live":
            (folder / "features" / "tiny").mkdir()
            for path in folder.glob("*.h5"):
                path.rename(folder / "features" / "tiny" / path.name)
    seconds = finish(commands, folders[0]) / len(commands)
    for kill in range(KILLS):
        process = start(commands[kill % len(commands)], folders[1])
        time.sleep(moments.uniform(0.4, 0.95) * seconds)
        process.kill()
        process.communicate()
    finish(commands, folders[1])
    assert left_by(folders[1]) == left_by(folders[0])
