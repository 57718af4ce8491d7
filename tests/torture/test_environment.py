"""Where the program runs: read-only places, full disks, closed outputs, little memory, signals."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from torture.tool import LONG, ROOT, SETS, command, environment, powerless, run
from zsntta_cli.__main__ import _interrupt_again

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


@pytest.mark.parametrize("megabytes", [250, 480, 700, 1000] if LONG else [480])
def test_little_memory(place, right, megabytes):
    """A line, or the result; what OpenBLAS says itself is not ours.

    Where its own buffers are what there is no room for (440 and 450 MB, where this was written), it
    tries for ever while SciPy is imported.
    """
    line = f"ulimit -v {megabytes * 1024}; exec " + " ".join(command(*RUN))
    try:
        answer = subprocess.run(
            ["bash", "-c", line], cwd=place, env=environment(OPENBLAS_NUM_THREADS="1"),
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip("OpenBLAS does not return")
    assert "Traceback" not in answer.stderr
    assert answer.stdout == right if answer.returncode == 0 else answer.returncode == 1
    if answer.returncode:
        assert len(errors(answer)) == 1
        assert "delete it" not in answer.stderr


def test_ctrl_c_at_any_time(place):
    """From the first moment that is ours, no traceback: a line, the result, or a quiet end."""
    started = time.monotonic()
    run(*RUN, cwd=place)
    whole = time.monotonic() - started
    for i in range(INTERRUPTS):
        process = subprocess.Popen(
            command(*RUN), cwd=place, env=environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        time.sleep(0.15 + (whole - 0.15) * i / INTERRUPTS)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert "Traceback" not in said, said
        assert process.returncode in (0, 130, -signal.SIGINT), (process.returncode, said)


def test_the_entry_point_is_the_one_that_guards():
    assert "zsntta_cli.__main__:main" in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("threads", [0, 6])  # on a busy machine a thread starts late
def test_ctrl_c_within_a_callback_comes_a_moment_later(monkeypatch, capsys, threads):
    """Python would print a traceback there and go on; any other error there is still printed."""
    is_over = threading.Event()

    class Finalised:
        def __init__(self, error):
            self.error = error

        def __del__(self):
            raise self.error

    def work():
        while not is_over.is_set():
            sum(range(20_000))

    def finalise():
        Finalised(KeyboardInterrupt())
        time.sleep(60)  # which it ends

    monkeypatch.setattr(sys, "unraisablehook", _interrupt_again)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    for _ in range(threads):
        threading.Thread(target=work, daemon=True).start()
    try:
        for _ in range(10):
            with pytest.raises(KeyboardInterrupt):
                finalise()
    finally:
        is_over.set()
        signal.signal(signal.SIGALRM, before)
    assert capsys.readouterr().err == ""
    Finalised(ValueError("another error"))
    assert "another error" in capsys.readouterr().err
