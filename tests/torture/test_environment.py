"""Where the program runs: read-only places, full disks, closed outputs, readers that leave."""

import os
import shutil
import subprocess

import numpy as np
import pytest

from torture.tool import LONG, ROOT, SETS, command, environment, powerless, run

RUN = ("simulate", "--method=adand", *SETS, "--set=warmup=1", "--set=update-every=16")
SHOWN = (*RUN, "--format=markdown", "--fresh")
ROWS = ("detect", "--cached=pets", "--encoder=made")


def errors(answer) -> list[str]:
    """What was said on stderr, but for how far it is: that depends on the machine's speed.

    Nor that results are not kept, where nothing can be written.
    """
    left_out = ("run ", "note: results are not kept")
    return [line for line in answer.stderr.splitlines() if not line.startswith(left_out)]


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


def test_replays_where_nothing_can_be_written(place, read_only):
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(read_only), "HOME": "/proc/none",
           "TMPDIR": "/proc/none"}  # fmt: skip
    answer = run(*SHOWN, cwd=place, before=powerless(), env=env)
    right = run(*SHOWN, cwd=place).stdout
    assert (answer.returncode, errors(answer), answer.stdout) == (0, [], right)


@pytest.mark.parametrize("words", [SHOWN, ("--help",)])
def test_a_full_disk_under_stdout(place, words):
    with open("/dev/full", "w") as full:
        answer = run(*words, cwd=place, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (answer.returncode, errors(answer)) == (1, ["error: No space left on device."])


CLOSED = [">&-", "2>&-", ">&- 2>&-", "<&-", "| head -1"]
CLOSINGS = [*((SHOWN, end) for end in (CLOSED if LONG else CLOSED[::4])), (ROWS, ">&-")]


@pytest.mark.parametrize(("words", "closed"), CLOSINGS)
def test_closed_outputs_and_readers_that_have_seen_enough(place, words, closed):
    line = " ".join(command(*words)) + f" {closed}"
    answer = subprocess.run(
        line, shell=True, cwd=place, env=environment(), capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0
    assert words == ROWS or errors(answer) == []


# --- disks of some KB under every output

DISKS = (4, 8, 16, 32, 64, 128) if LONG else (8,)  # KiB
TO_A_DISK = {
    "--output": (*RUN, "--format=csv", "--output=disk/out.csv"),
    "--scores": (*RUN, "--fresh", "--scores=disk/scores.csv"),
    "the store": (*RUN, "--records=disk/kept.sqlite"),
    "report": ("report", "theirs.jsonl", "--output=disk/page.html"),
    "cache import": ("cache", "import", "new", "--features=in.npy", "--encoder=mine",
                     "--features-dir=disk"),
    "cache export": ("cache", "export", "pets", "--output=disk/pets.npz"),
    "records export": ("records", "export", "--output=disk/runs.jsonl"),
    "records import": ("records", "import", "theirs.jsonl", "--records=disk/kept.sqlite"),
    "detect": (*ROWS, "--output=disk/rows.csv"),
}  # fmt: skip
OUTPUTS = list(TO_A_DISK) if LONG else list(TO_A_DISK)[:4]


@pytest.fixture(scope="module")
def prepared(place):
    """The folder with what is written to a disk."""
    np.save(place / "in.npy", np.random.default_rng(0).random((600, 64), np.float32))
    for words in (RUN, ("records", "export", "--output=theirs.jsonl")):
        answer = run(*words, cwd=place)
        assert answer.returncode == 0, answer.stderr
    return place


@pytest.mark.skipif(shutil.which("mount") is None, reason="nothing mounts")
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_full_disk_under(prepared, name):
    """What is there afterwards is whole, or nothing; what went wrong is one line."""
    disk = prepared / "disk"
    disk.mkdir(exist_ok=True)
    for kib in DISKS:
        line = ["mount", "-t", "tmpfs", "-o", f"size={kib}k,nr_inodes=64", "none", str(disk)]
        if os.geteuid() or subprocess.run(line, check=False, capture_output=True).returncode:
            pytest.skip("root alone can mount a disk, and not everywhere")
        try:
            answer = run(*TO_A_DISK[name], cwd=prepared)
            left = {path.name for path in disk.rglob("*") if path.is_file()}
        finally:
            subprocess.run(["umount", str(disk)], check=False, capture_output=True)
        said = [line for line in answer.stderr.splitlines() if line.startswith("error: ")]
        assert "Traceback" not in answer.stderr, answer.stderr
        assert (answer.returncode, len(said)) in ((0, 0), (1, 1)), (kib, answer)
        assert not {one for one in left if one.startswith(".zsntta-")}, kib
        written = {one for one in left if one[0] != "." and "sqlite" not in one}
        assert answer.returncode == 0 or not written, (kib, written)
