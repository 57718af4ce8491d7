"""`extract --tpt` and what replays it, through the command line."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from made import TINY, ZSNTTA, fails

from zsntta_cli.cache.answers import SUFFIX
from zsntta_cli.simulation.tuned import CACHED_ANSWERS

EXTRACT = ("extract", *TINY, "--dataset", "shapes", "--dataset", "glyphs", "--limit", 6,
           "--noise-count", 2, "--device", "cpu")  # fmt: skip
RUN = ("simulate", *TINY, "--method", "tpt", "--ood", "glyphs")


def files(folder="."):
    from pathlib import Path

    return sorted(path.name for path in Path(folder, "features", "tiny").glob(f"*{SUFFIX}"))


def test_asked_once_it_is_replayed_in_all_streams_and_processes(zsntta, tmp_path):
    first = zsntta(*EXTRACT, "--tpt")
    assert first.exit_code == 0, first.stderr
    assert first.stdout.count("answers of TPT for 6 images, 6 of them in") == 2
    assert [name.split(".")[0] for name in files()] == ["glyphs", "shapes"]  # noise was not named
    again = zsntta(*EXTRACT, "--tpt", "--noise", "gaussian")
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


def test_answers_are_listed_shown_and_verified(zsntta, tmp_path):
    assert zsntta(*EXTRACT, "--tpt").exit_code == 0
    listed = zsntta("cache", "list")
    assert "shapes, answers of TPT" in listed.stdout
    assert "6 of 6 images" in listed.stdout
    shown = zsntta("cache", "show", "shapes")
    assert f"answers: {files()[1]}" in shown.stdout
    assert zsntta("cache", "verify").stdout.count(".tpt: ok\n") == 2
    assert zsntta(*EXTRACT, "--limit", 5, "--overwrite").exit_code == 0
    stale = zsntta("cache", "verify", "shapes")
    assert stale.exit_code == 1
    assert "answers on other features than shapes.h5 has now" in stale.stdout
    assert "answers on other features" in zsntta("cache", "list").stdout
    assert zsntta(*EXTRACT, "--limit", 5, "--tpt").exit_code == 0
    assert zsntta("cache", "verify").exit_code == 0


def test_a_dry_run_says_whose_images_would_be_asked(zsntta):
    result = zsntta(*EXTRACT, "--tpt", "--dry-run")
    assert "TPT would be asked about the images of shapes, glyphs" in result.stdout
    assert files() == []


def test_a_replay_imports_no_torch(zsntta, tmp_path):
    assert zsntta(*EXTRACT, "--tpt").exit_code == 0
    words = [str(word) for word in (*RUN, "--format", "json")]
    code = (
        "import sys\nfrom zsntta_cli.cli import app\n"
        f"try:\n    app({words!r})\nfinally:\n    assert 'torch' not in sys.modules"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)[0]["device"] == CACHED_ANSWERS


def test_a_killed_extraction_goes_on_and_gives_the_same_answers(zsntta, tmp_path, monkeypatch):
    command = [ZSNTTA, *map(str, (*EXTRACT, "--limit", 40, "--tpt"))]
    assert zsntta(*EXTRACT, "--limit", 40).exit_code == 0
    at_once = (
        "import sys\nfrom zsntta_cli.simulation import tuned\ntuned._MANY = 1\n"
        f"from zsntta_cli.cli import app\napp({command[1:]!r})"
    )
    folder = tmp_path / "features" / "tiny"
    process = subprocess.Popen([sys.executable, "-c", at_once], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    while process.poll() is None and len(list(folder.glob(f".*/*{SUFFIX}"))) < 5:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    parts = list(folder.glob(f".*/*{SUFFIX}"))
    assert parts or files()
    result = zsntta(*EXTRACT, "--limit", 40, "--tpt")
    assert result.exit_code == 0, result.stderr
    assert "answers of TPT for 40 images, 40 of them" not in result.stdout.splitlines()[-2]
    replayed = zsntta(*RUN, "--format", "json")
    assert json.loads(replayed.stdout)[0]["device"] == CACHED_ANSWERS


@pytest.mark.parametrize("method", ["tent", "sotta"])
def test_other_live_methods_keep_no_answers(zsntta, method):
    assert zsntta(*EXTRACT).exit_code == 0
    result = zsntta("simulate", *TINY, "--method", method, "--ood", "glyphs", "--limit", 4)
    assert result.exit_code == 0, result.stderr
    assert files() == []
