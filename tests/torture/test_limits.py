"""Disks of some KB under every output: a result or one line."""

import os
import shutil
import subprocess

import numpy as np
import pytest

from torture.conftest import make_sets
from torture.tool import LONG, SETS, run

RUN = ("simulate", "--method=adand", *SETS, "--set=warmup=1", "--set=update-every=16")
DISKS = (4, 8, 16, 32, 64, 128) if LONG else (8,)  # KiB
TO_A_DISK = {
    "--output": (*RUN, "--format=csv", "--output=disk/out.csv"),
    "--scores": (*RUN, "--fresh", "--scores=disk/scores.h5"),
    "the store": (*RUN, "--records=disk/kept.sqlite"),
    "report": ("report", "theirs.jsonl", "--output=disk/page.html"),
    "cache import": ("cache", "import", "new", "--features=in.npy", "--encoder=mine",
                     "--features-dir=disk"),
    "cache export": ("cache", "export", "pets", "--output=disk/pets.npz"),
    "records export": ("records", "export", "--output=disk/runs.jsonl"),
    "records import": ("records", "import", "theirs.jsonl", "--records=disk/kept.sqlite"),
    "detect": ("detect", "--set=pets", "--encoder=made", "--output=disk/rows.csv"),
}  # fmt: skip
OUTPUTS = list(TO_A_DISK) if LONG else list(TO_A_DISK)[:4]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    make_sets(folder / "features")
    np.save(folder / "in.npy", np.random.default_rng(0).random((600, 64), np.float32))
    for words in (RUN, ("records", "export", "--output=theirs.jsonl")):
        answer = run(*words, cwd=folder)
        assert answer.returncode == 0, answer.stderr
    return folder


@pytest.fixture
def disk(prepared):
    """A function that mounts a disk of so many KiB, where root can mount one."""
    place = prepared / "disk"
    place.mkdir(exist_ok=True)

    def mount(kib):
        unmount()
        line = ["mount", "-t", "tmpfs", "-o", f"size={kib}k,nr_inodes=64", "none", str(place)]
        if os.geteuid() or subprocess.run(line, check=False, capture_output=True).returncode:
            pytest.skip("root alone can mount a disk, and not everywhere")
        return place

    def unmount():
        subprocess.run(["umount", str(place)], check=False, capture_output=True)

    yield mount
    unmount()


@pytest.mark.skipif(shutil.which("mount") is None, reason="nothing mounts")
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_full_disk_under(prepared, disk, name):
    """What is there afterwards is whole, or nothing; what went wrong is one line."""
    for kib in DISKS:
        place = disk(kib)
        answer = run(*TO_A_DISK[name], cwd=prepared)
        errors = [line for line in answer.stderr.splitlines() if line.startswith("error: ")]
        assert "Traceback" not in answer.stderr, answer.stderr
        assert (answer.returncode, len(errors)) in ((0, 0), (1, 1)), (kib, answer)
        left = {path.name for path in place.rglob("*") if path.is_file()}
        assert not {one for one in left if one.startswith(".zsntta-")}, kib
        written = {one for one in left if one[0] != "." and "sqlite" not in one}
        assert answer.returncode == 0 or not written, (kib, written)
