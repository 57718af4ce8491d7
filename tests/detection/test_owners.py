"""A state file has one writer: one process at a time."""

import gc
import subprocess
import sys

import pytest

from zsntta_cli import OnlineDetector
from zsntta_cli.errors import StoreError

OWNING = """
import sys
from zsntta_cli import OnlineDetector, ZsnttaError
detector = OnlineDetector([[1.0, 0.0], [0.0, 1.0]], 100.0)
try:
    detector.save(sys.argv[1])
except ZsnttaError as error:
    sys.exit(str(error))
print("saved", flush=True)
sys.stdin.readline()
"""


def detector():
    return OnlineDetector([[1.0, 0.0], [0.0, 1.0]], 100.0)


def owner(path):
    command = [sys.executable, "-c", OWNING, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes)


def test_one_process_writes_a_state_at_a_time(tmp_path):
    path = tmp_path / "s.h5"
    wrong = "is written by another process that runs"
    with owner(path) as first:
        assert first.stdout.readline() == "saved\n"
        with owner(path) as second:
            assert wrong in second.communicate(timeout=60)[1]
        before = path.read_bytes()
        with pytest.raises(StoreError, match=wrong):
            detector().save(path)
        assert path.read_bytes() == before
        assert OnlineDetector.load(path).seen == 0, "reading is for all"
        first.kill()
    one, other = detector(), detector()
    one.save(path)
    other.save(path)  # another of this process
    with owner(path) as third:
        assert wrong in third.communicate(timeout=60)[1]
    del one, other
    gc.collect()
    with owner(path) as last:
        assert last.stdout.readline() == "saved\n", "nobody owns it any more"
        last.kill()
