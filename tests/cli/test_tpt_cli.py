"""TPT's answers that live runs keep, and what replays them, through the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from made import TINY

from zsntta_cli.cache.folder import ANSWERS
from zsntta_cli.methods.live.tuned import is_known
from zsntta_cli.simulation.tuned import CACHED_ANSWERS

RUN = ("simulate", *TINY, "--method", "tpt", "--ood", "glyphs")
LIVE = (*RUN, "--set", "pipeline=all", "--device", "cpu")  # it asks about every image


def extract(zsntta, *more, limit=6):
    sets = ("--dataset", "shapes", "--dataset", "glyphs", "--noise-count", 2)
    command = ("extract", *TINY, *sets, "--limit", limit, "--device", "cpu", *more)
    assert zsntta(*command).exit_code == 0


def files():
    return sorted(path.name for path in Path("features", "tiny").glob(f"*{ANSWERS}"))


def test_after_a_live_run_all_streams_are_replayed_in_processes_without_torch(zsntta, tmp_path):
    extract(zsntta)
    first = zsntta(*LIVE)
    assert first.exit_code == 0, first.stderr
    assert [name.split(".")[0] for name in files()] == ["glyphs", "shapes"]  # no noise was shown
    assert "shapes, TPT's answers" in zsntta("cache", "list").stdout
    streams = ("--set", "pipeline=gt", "--set", "pipeline=normal", "--ratio", 0.25, "--ratio", 0.5,
               "--order", "shuffled", "--order", "burst", "--noise", "gaussian", "--seed", 0,
               "--seed", 1, "--threshold", "adaptive", "--threshold", 0.5)  # fmt: skip
    result = zsntta(*RUN, *streams, "--jobs", 2, "--format", "json")
    assert result.exit_code == 0, result.stderr
    records = json.loads(result.stdout)
    assert len(records) == 32
    assert {record["device"] for record in records} == {CACHED_ANSWERS}
    assert zsntta(*RUN).exit_code == 0
    words = [str(word) for word in (*RUN, "--format", "json", "--fresh")]
    code = (
        "import sys\nfrom zsntta_cli.cli import main\n"
        f"try:\n    main({words!r})\nfinally:\n    assert 'torch' not in sys.modules"
    )
    replayed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert replayed.returncode == 0, replayed.stderr
    assert json.loads(replayed.stdout)[0]["device"] == CACHED_ANSWERS


def answers(path):
    with np.load(path) as kept:
        return kept["answers"]


@pytest.mark.slow
def test_a_killed_run_goes_on_and_gives_the_same_answers(zsntta, tmp_path):
    extract(zsntta, limit=12)
    assert zsntta(*LIVE).exit_code == 0
    folder = tmp_path / "features" / "tiny"
    expected = {path.name: answers(path) for path in folder.glob(f"*{ANSWERS}")}
    for path in folder.glob(f"*{ANSWERS}"):
        path.unlink()
    again = [*map(str, LIVE), "--fresh"]
    one_by_one = (
        "from zsntta_cli.methods.live import tuned\ntuned._SECONDS = 0\n"
        f"from zsntta_cli.cli import main\nmain({again!r})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", one_by_one], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while process.poll() is None and not list(folder.glob(f"shapes.*{ANSWERS}")):
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    [first] = folder.glob(f"shapes.*{ANSWERS}")
    known = is_known(answers(first))
    assert known.any()
    resumed = zsntta(*again)
    assert resumed.exit_code == 0, resumed.stderr
    assert files() == sorted(expected)
    for name, rows in expected.items():
        np.testing.assert_allclose(answers(folder / name), rows, rtol=1e-4)
