"""Paths on standard input, as `zsntta detect -` is typed behind a pipe."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from detected import SHAPES
from made import ZSNTTA

DETECT = [ZSNTTA, "detect", "-", *SHAPES]


def lines():
    """The paths of the pictures, as a pipe brings them."""
    return [os.fsencode(path) + b"\n" for path in sorted(Path("pictures").rglob("*.png"))]


@pytest.fixture
def process(pictures):
    """The command behind a pipe."""
    running = []

    def start(*options):
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        running.append(subprocess.Popen([*DETECT, *options], **streams))
        return running[0]

    with contextlib.ExitStack() as stack:
        yield start
        stack.enter_context(contextlib.suppress(BrokenPipeError))
        for one in running:
            stack.enter_context(one)


def test_each_is_answered_at_once_as_in_one_piece(pictures, process):
    paths = lines()
    whole = subprocess.run(DETECT, input=b"".join(paths), capture_output=True, check=True)
    expected = [json.loads(line) for line in whole.stdout.splitlines()]
    assert [os.fsencode(row["source"]) + b"\n" for row in expected] == paths
    detect = process()
    for path, row in zip(paths[:12], expected, strict=False):
        detect.stdin.write(path)
        detect.stdin.flush()
        assert json.loads(detect.stdout.readline()) == row
    stdout, _ = detect.communicate()
    assert (stdout, detect.returncode) == (b"", 0)


def test_ctrl_c_keeps_what_was_decided(process):
    detect = process("--print0", "--output", "rows.jsonl", "--copy-to", "out")
    names = [os.fsdecode(path[:-1]) for path in lines()[:6]]
    detect.stdin.write(b"".join(lines()[:6]))
    detect.stdin.flush()
    wanted = b"".join(os.fsencode(name) + b"\0" for name in names)
    assert detect.stdout.read(len(wanted)) == wanted
    detect.send_signal(signal.SIGINT)
    _, said = detect.communicate(timeout=60)
    said = said.decode().splitlines()
    assert detect.returncode == 130
    assert any(line.startswith("6 images, ") for line in said)
    assert said[-1].startswith("interrupted")
    found = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [row["source"] for row in found] == names
    copied = sorted(path.name for path in Path("out").rglob("*.png"))
    assert copied == sorted(Path(name).name for name in names)


def test_whoever_has_seen_enough_ends_it(process):
    detect, (first, *more) = process(), lines()
    detect.stdin.write(first)
    detect.stdin.flush()
    assert os.fsencode(json.loads(detect.stdout.readline())["source"]) == first[:-1]
    detect.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        for path in more:
            detect.stdin.write(path)
            detect.stdin.flush()
    assert detect.wait(timeout=60) == 0
    assert detect.stderr.read().startswith(b"note: 10 classes: circle, ")


def test_pictures_are_no_paths(pictures):
    content = Path("pictures/x/00000.png").read_bytes()
    done = subprocess.run(DETECT, input=content, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"'-' reads paths" in done.stderr.splitlines()[-1]
