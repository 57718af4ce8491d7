"""Where the program runs: read-only places, full disks, closed outputs, little memory, signals."""

import os
import shutil
import subprocess

import pytest

from torture.tool import LONG, ROOT, SETS, command, environment, powerless, run

RUN = ("simulate", "--method=adand", *SETS, "--set=warmup=1", "--set=update-every=16",
       "--format=markdown", "--fresh")  # fmt: skip
INTERRUPTS = 60 if LONG else 2


def errors(answer) -> list[str]:
    """What was said on stderr, but for how far it is: that depends on the machine's speed.

    Nor that results are not kept, where nothing can be written.
    """
    left_out = ("run ", "note: results are not kept")
    return [line for line in answer.stderr.splitlines() if not line.startswith(left_out)]


@pytest.fixture(scope="module")
def right(place):
    return run(*RUN, cwd=place).stdout


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    """The package where nothing can be written."""
    folder = tmp_path_factory.mktemp("installed")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "zsntta_cli", folder / "zsntta_cli", ignore=ignore)
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(path.stat().st_mode & ~0o222)
    yield folder
    for path in paths:
        path.chmod(path.stat().st_mode | 0o200)


def test_replays_where_nothing_can_be_written(place, right, read_only):
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(read_only), "HOME": "/proc/none",
           "TMPDIR": "/proc/none"}  # fmt: skip
    answer = run(*RUN, cwd=place, before=powerless(), env=env)
    assert (answer.returncode, errors(answer), answer.stdout) == (0, [], right)


@pytest.mark.parametrize("words", [RUN, ("--help",)])
def test_a_full_disk_under_stdout(place, words):
    with open("/dev/full", "w") as full:
        answer = run(*words, cwd=place, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (answer.returncode, errors(answer)) == (1, ["error: No space left on device."])


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"] if LONG else [">&-"])
def test_closed_outputs(place, closed):
    line = " ".join(command(*RUN)) + f" {closed}"
    answer = subprocess.run(
        line, shell=True, cwd=place, env=environment(), capture_output=True, text=True, check=False
    )
    assert (answer.returncode, errors(answer)) == (0, [])


def test_a_reader_that_has_seen_enough(place):
    line = " ".join(command("datasets", "list")) + " | head -1"
    answer = subprocess.run(
        line, shell=True, cwd=place, env=environment(), capture_output=True, text=True, check=False
    )
    assert errors(answer) == []
