"""Kills of what takes long to write: nothing half-made is ever taken for whole."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from torture.tool import LONG, ROOT, command, environment
from zsntta_cli.cache import store
from zsntta_cli.cache.store import problems

IMPORTS = 30 if LONG else 2
EXTRACTIONS = 200 if LONG else 0
ROUNDS = 50 if LONG else 3


@pytest.mark.skipif(not EXTRACTIONS, reason="a hundred are in tests/extraction")
def test_extractions(tmp_path):
    script = ROOT / "tests" / "whole" / "kill_extractions.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path, str(EXTRACTIONS)], env=environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    is_right = done.returncode == 0 and done.stdout.startswith(f"{EXTRACTIONS} kills")
    assert is_right, done.stdout + done.stderr


@pytest.mark.slow
def test_parts(tmp_path):
    """Parts by four processes, two of which are killed: joined, the bytes of a whole extraction."""
    script = ROOT / "tests" / "whole" / "kill_parts.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path, str(ROUNDS)], env=environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    is_right = done.returncode == 0 and done.stdout.startswith(f"{ROUNDS} rounds")
    assert is_right, done.stdout + done.stderr


@pytest.mark.skipif(not LONG, reason="fewer are in the rooms' tests")
@pytest.mark.parametrize(("name", "kills"), [("results", 400), ("live", 50)])
def test_what_is_shared(features, cache, tmp_path, name, kills):
    """Grids of two processes, a queue of live runs."""
    before = {
        "results": (features, "made", "pets", "sky", tmp_path),
        "live": (cache, tmp_path),
    }[name]
    script = ROOT / "tests" / "whole" / f"kill_{name}.py"
    done = subprocess.run(
        [sys.executable, script, *before, str(kills)], env=environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_imports(tmp_path):
    """The file is not there, or whole; the next import makes it, and sweeps."""
    generator = np.random.default_rng(0)
    np.save(tmp_path / "in.npy", generator.standard_normal((40_000, 64), np.float32))
    line = command("cache", "import", "new", "--features", "in.npy", "--encoder", "mine")
    folder = tmp_path / "features" / "mine"
    started = time.monotonic()
    subprocess.run(line, cwd=tmp_path, env=environment(), capture_output=True, check=True)
    whole, digest = time.monotonic() - started, store.read(folder / "new.h5").digest
    for kill in range(IMPORTS):
        (folder / "new.h5").unlink(missing_ok=True)
        process = subprocess.Popen(
            line, cwd=tmp_path, env=environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(whole * (0.5 + 0.5 * kill / IMPORTS))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (folder / "new.h5").exists():
            assert not problems(folder / "new.h5")
    (folder / "new.h5").unlink(missing_ok=True)
    subprocess.run(line, cwd=tmp_path, env=environment(), capture_output=True, check=True)
    assert store.read(folder / "new.h5").digest == digest
    assert {path.name for path in folder.iterdir()} <= {"new.h5", ".new.lock"}
