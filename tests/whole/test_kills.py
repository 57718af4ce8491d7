"""Whatever works for long is stopped while it works, and run again: the same bytes.

By `kill -9`, Ctrl-C or a closed terminal: no traceback, nothing half-written.
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing

import numpy as np
import pytest
from made import TINY
from PIL import Image
from torture.tool import LONG, SETS, command, environment

from zsntta_cli.cache import store

STOPS = int(os.environ.get("ZSNTTA_MOMENTS", "30" if LONG else "3"))
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
    "paper": [("paper", "10", *TINY, "--output=out.csv")],
    "report": [("report", "theirs.jsonl", "--output=out.html")],
    "records import": [("records", "import", "theirs.jsonl")],
}  # fmt: skip
OF_CACHE = ("live", "paper")  # they need the features of the built-in sets
ENDS = {  # the exit codes: it came to its end, it said something, it had no time to
    signal.SIGKILL: (0, -signal.SIGKILL),
    signal.SIGINT: (0, 130, -signal.SIGINT),
    signal.SIGHUP: (0, 129, -signal.SIGHUP),
}
QUICK = (("simulate", signal.SIGKILL), ("simulate", signal.SIGINT), ("report", signal.SIGINT))


def finish(commands, folder):
    """Let them end; how long they took."""
    begun = time.monotonic()
    for words in commands:
        done = subprocess.run(command(*words), cwd=folder, env=environment(), text=True,
                              capture_output=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
    return time.monotonic() - begun


@pytest.fixture(scope="module")
def prepared(features, tmp_path_factory):
    """A folder in which each of the commands has something to do."""
    folder = tmp_path_factory.mktemp("kills")
    shutil.copytree(features, folder / "features")
    generator = np.random.default_rng(0)
    np.save(folder / "in.npy", generator.standard_normal((40_000, 64), np.float32))
    (folder / "photos").mkdir()
    for i in range(60):
        Image.new("RGB", (16, 16), (4 * i, 90, 255 - 4 * i)).save(folder / "photos" / f"{i}.png")
    runs = ("simulate", "--method=zs-clip,mcm", *SETS)
    finish([runs, ("records", "export", "--output=theirs.jsonl")], folder)
    for path in (folder / "features").glob("records.sqlite*"):
        path.unlink()
    return folder


def wrong_with(folder):
    """What is half-written of what lies there."""
    files = folder.glob("features/*/*.h5")
    wrong = [line for path in files for line in store.problems(path)]
    for path in folder.glob("features/records.sqlite"):
        with closing(sqlite3.connect(path)) as database:
            [(said,)] = database.execute("PRAGMA integrity_check").fetchall()
        wrong += [] if said == "ok" else [said]
    for path in folder.glob("out.*"):
        end = "</html>" if path.suffix == ".html" else ""
        wrong += [] if path.read_text().endswith(f"{end}\n") else [f"{path.name} is cut off"]
    return wrong


def left_by(folder):
    """What a folder holds, but for times: features, runs, the names of all files, outputs."""
    held = {}
    for path in (folder / "features").rglob("*.h5"):
        features = store.read(path)  # its seal covers all but these
        held[str(path.relative_to(folder))] = (
            features.seal, features.source, store.read_sample_ids(path)
        )  # fmt: skip
    if (folder / "features" / "records.sqlite").exists():
        finish([("records", "export", "--format=json", "--output=runs.json")], folder)
        held["runs"] = sorted(
            json.dumps([run[part] for part in ("settings", "digests", "accuracies", "counts")])
            for run in json.loads((folder / "runs.json").read_text())
        )
    held["files"] = {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in (".lock", ".sqlite-wal", ".sqlite-shm")
    }
    held["out"] = [path.read_bytes() for path in folder.glob("out.csv")]
    return held


@pytest.mark.parametrize(
    ("name", "number"),
    [pytest.param(name, number, marks=[] if (name, number) in QUICK else pytest.mark.slow)
     for number in ENDS for name in COMMANDS
     if LONG or number == signal.SIGKILL or (name, number) in QUICK],
)  # fmt: skip
def test_stopped_at_any_moment_and_run_again_it_leaves_the_same_bytes(
    prepared, cache, tmp_path, name, number
):
    commands, moments = COMMANDS[name], random.Random(0)
    folders = [tmp_path / "undisturbed", tmp_path / "stopped"]
    for folder in folders:
        shutil.copytree(prepared, folder)
        if name in OF_CACHE:
            shutil.copytree(cache / "tiny", folder / "features" / "tiny")
    seconds = finish(commands, folders[0]) / len(commands)
    for stop in range(STOPS):
        words = commands[stop % len(commands)]
        codes = (*ENDS[number], 1) if words[0] == "cache" else ENDS[number]  # parts are missing
        process = subprocess.Popen(
            command(*words), cwd=folders[1], env=environment(), text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        time.sleep(moments.uniform(0.2, 0.95) * seconds)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
        assert wrong_with(folders[1]) == []
        # Before main, or when Python ends, there may be one; then the code is any.
        is_outside = "Traceback" in said or "Python runtime state: finalizing" in said
        assert "Traceback" not in said or 'zsntta_cli/__main__.py", line' not in said, said
        assert process.returncode in codes or is_outside, said
        assert process.returncode != 130 or "interrupted" in said, said
    finish(commands, folders[1])
    assert wrong_with(folders[1]) == []
    assert left_by(folders[1]) == left_by(folders[0])
