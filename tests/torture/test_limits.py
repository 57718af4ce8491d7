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
    "--scores": (*RUN, "--fresh", "--scores=disk/scores.csv"),
    "--scores .h5": (*RUN, "--fresh", "--scores=disk/scores.h5"),
    "the store": (*RUN, "--records=disk/kept.sqlite"),
    "cache import": ("cache", "import", "new", "--features=in.npy", "--encoder=mine",
                     "--features-dir=disk"),
    "cache export": ("cache", "export", "pets", "--output=disk/pets.npz"),
    "records export": ("records", "export", "--output=disk/runs.jsonl"),
    "records import": ("records", "import", "theirs.jsonl", "--records=disk/kept.sqlite"),
    "report": ("report", "theirs.jsonl", "--output=disk/page.html"),
    "state": ("detect", "--set=pets", "--encoder=made", "--output=disk/rows.csv"),
}  # fmt: skip
OUTPUTS = TO_A_DISK if LONG else ("--output", "--scores .h5", "the store", "report")


def wrong(answer) -> list[str]:
    """What is bad about an answer: it is a result, or one line on what went wrong."""
    errors = [line for line in answer.stderr.splitlines() if line.startswith("error: ")]
    if "Traceback" in answer.stderr or "Exception ignored" in answer.stderr:
        return [answer.stderr]
    if answer.returncode == 0 and not errors:
        return []
    if answer.returncode == 1 and len(errors) == 1:
        return []
    return [f"exit code {answer.returncode}: {answer.stderr}"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    make_sets(folder / "features")
    np.save(folder / "in.npy", np.random.default_rng(0).random((600, 64), np.float32))
    assert run(*RUN, cwd=folder).returncode == 0
    export = run("records", "export", "--output=theirs.jsonl", cwd=folder)
    assert export.returncode == 0, export.stderr
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
    """What was there stays, and what is there is whole: the file of a larger disk, or none."""
    bad, lengths = [], set()
    for kib in DISKS:
        place = disk(kib)
        answer = run(*TO_A_DISK[name], cwd=prepared)
        bad += [f"{kib} KiB: {one}" for one in wrong(answer)]
        left = [path for path in place.rglob("*") if path.is_file()]
        written = [p for p in left if not p.name.startswith(".") and "sqlite" not in p.name]
        bad += [f"{kib} KiB: {p} is left" for p in left if p.name.startswith(".zsntta-")]
        if answer.returncode == 0:
            lengths |= {len(path.read_bytes()) // 1000 for path in written}
        else:
            bad += [f"{kib} KiB: {path} is half-written" for path in written]
    if len(lengths) > 1:
        bad.append(f"files of {lengths} KB")
    assert not bad, bad
