"""`extract --tpt` and what replays it, through the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from made import TINY, fails

from zsntta_cli.cache.answers import SUFFIX
from zsntta_cli.cache.hdf5 import read_state
from zsntta_cli.simulation.tuned import CACHED_ANSWERS

RUN = ("simulate", *TINY, "--method", "tpt", "--ood", "glyphs")


def extract(*more, limit=6):
    sets = ("--dataset", "shapes", "--dataset", "glyphs", "--noise-count", 2)
    return ("extract", *TINY, *sets, "--limit", limit, "--device", "cpu", *more)


def files():
    return sorted(path.name for path in Path("features", "tiny").glob(f"*{SUFFIX}"))


def test_asked_once_it_is_replayed_in_all_streams_and_processes_without_torch(zsntta, tmp_path):
    dry = zsntta(*extract("--tpt", "--dry-run"))
    assert "TPT would be asked about the images of shapes, glyphs" in dry.stdout
    assert files() == []
    first = zsntta(*extract("--tpt"))
    assert first.exit_code == 0, first.stderr
    assert first.stdout.count("answers of TPT for 6 images, 6 of them in") == 2
    assert [name.split(".")[0] for name in files()] == ["glyphs", "shapes"]  # noise was not named
    again = zsntta(*extract("--tpt", "--noise", "gaussian"))
    assert again.stdout.count("answers of TPT for 6 images, there already") == 2
    assert "noise-gaussian" in again.stdout.splitlines()[-1]

    streams = ("--pipeline", "gt", "--pipeline", "all", "--ratio", 0.25, "--ratio", 0.5,
               "--order", "shuffled", "--order", "burst", "--noise", "gaussian", "--seed", 0,
               "--seed", 1, "--threshold", "adaptive", "--threshold", 0.5)  # fmt: skip
    result = zsntta(*RUN, *streams, "--jobs", 2, "--format", "json")
    assert result.exit_code == 0, result.stderr
    records = json.loads(result.stdout)
    assert len(records) == 32
    assert {record["device"] for record in records} == {CACHED_ANSWERS}
    refused = zsntta(*RUN, "--views-by", "stream", "--jobs", 2)
    fails(refused, "error: live methods take the whole machine: jobs must be 1.\n", code=2)
    foreseen = zsntta(*RUN, "--dry-run", "--views-by", "image", "--views-by", "stream")
    assert "1 of the runs to run are live" in foreseen.stdout

    words = [str(word) for word in (*RUN, "--format", "json", "--fresh")]
    code = (
        "import sys\nfrom zsntta_cli.cli import app\n"
        f"try:\n    app({words!r})\nfinally:\n    assert 'torch' not in sys.modules"
    )
    replayed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert replayed.returncode == 0, replayed.stderr
    assert json.loads(replayed.stdout)[0]["device"] == CACHED_ANSWERS


def test_answers_are_listed_shown_and_verified(zsntta):
    assert zsntta(*extract("--tpt")).exit_code == 0
    listed = zsntta("cache", "list").stdout
    assert "shapes, answers of TPT" in listed
    assert "6 of 6 images" in listed
    assert f"answers: {files()[1]}" in zsntta("cache", "show", "shapes").stdout
    assert zsntta("cache", "verify").stdout.count(".tpt: ok\n") == 2
    assert zsntta(*extract("--overwrite", limit=5)).exit_code == 0
    stale = zsntta("cache", "verify", "shapes")
    assert stale.exit_code == 1
    assert "answers on other features than shapes.h5 has now" in stale.stdout
    assert "answers on other features" in zsntta("cache", "list").stdout
    assert zsntta(*extract("--tpt", limit=5)).exit_code == 0
    assert zsntta("cache", "verify").exit_code == 0


def test_with_paper_all_that_its_runs_need_is_asked(zsntta):
    everything = ("extract", "--paper", *TINY, "--limit", 4, "--tpt", "--device", "cpu")
    result = zsntta(*everything)
    assert result.exit_code == 0, result.stderr
    names = {name.split(".")[0] for name in files()}
    assert names == {"shapes", "glyphs", "textures", "other-shapes", "digits"}
    foreseen = zsntta(*everything, "--dry-run")
    assert "asked about the images of 5 sets that are extracted already" in foreseen.stdout
    (Path("features") / "tiny" / files()[0]).write_bytes(b"broken")
    again = zsntta(*everything)
    assert again.exit_code == 1
    assert again.stdout.count("there already") >= 4  # the others went on
    assert "not extracted: TPT on digits" in again.stderr


def answers(path):
    _, columns = read_state(path)
    return columns


@pytest.mark.slow
def test_a_killed_extraction_goes_on_and_gives_the_same_answers(zsntta, tmp_path):
    whole = zsntta(*extract("--tpt", limit=12))
    assert whole.exit_code == 0, whole.stderr
    folder = tmp_path / "features" / "tiny"
    expected = {path.name: answers(path) for path in folder.glob(f"*{SUFFIX}")}
    for path in folder.glob(f"*{SUFFIX}"):
        path.unlink()
    one_by_one = (
        "from zsntta_cli.simulation import tuned\ntuned._MANY, tuned._PARTS = 1, 5\n"
        f"from zsntta_cli.cli import app\napp({[str(w) for w in extract('--tpt', limit=12)]!r})"
    )
    for name in ("shapes", "glyphs"):
        process = subprocess.Popen(
            [sys.executable, "-c", one_by_one], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        while process.poll() is None and not list(folder.glob(f"*{name}.*/*{SUFFIX}")):
            time.sleep(0.02)
        assert process.poll() is None, process.communicate()
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    resumed = zsntta(*extract("--tpt", limit=12))
    assert resumed.exit_code == 0, resumed.stderr
    first, second = resumed.stdout.splitlines()[-2:]
    assert first.endswith("answers of TPT for 12 images, there already")
    assert "12 of them" not in second
    assert files() == sorted(expected)
    for name, columns in expected.items():
        for column, values in answers(folder / name).items():
            np.testing.assert_allclose(values, columns[column], rtol=1e-4)


def test_other_live_methods_keep_no_answers(zsntta):
    assert zsntta(*extract()).exit_code == 0
    result = zsntta("simulate", *TINY, "--method", "tent,sotta", "--ood", "glyphs", "--limit", 4)
    assert result.exit_code == 0, result.stderr
    assert files() == []
