"""Paths on standard input, as `zsntta detect -` is typed behind a pipe."""

import contextlib
import io
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from made import TINY, ZSNTTA, fails

from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.detection import sources

SHAPES = ("--classes", ",".join(render("shapes").class_names), *TINY)
DETECT = [ZSNTTA, "detect", "-", *SHAPES]


def files():
    return sorted(Path("pictures").rglob("*.png"))


def line(path):
    return os.fsencode(path) + b"\n"


def rows(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def piped(pictures, monkeypatch):
    """Run the command line with something on standard input."""

    def run(content, *arguments):
        file = io.BytesIO(content)
        monkeypatch.setattr(sources, "_standard_input", file.read)
        return pictures("detect", "-", *SHAPES, *arguments)

    return run


def test_ctrl_c_keeps_what_was_decided(pictures):
    process = subprocess.Popen(
        [*DETECT, "--print0", "--out", "rows.jsonl", "--copy-to", "out", "--flag", "60%"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    names = [str(path) for path in files()[:6]]
    with process:
        process.stdin.write(b"".join(map(line, names)))
        process.stdin.flush()
        wanted = b"".join(os.fsencode(name) + b"\0" for name in names)
        assert process.stdout.read(len(wanted)) == wanted
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode().splitlines()[-1].startswith("interrupted")
    found = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [row["source"] for row in found] == names
    noise = {row["source"].rpartition("/")[2] for row in found if row["noise"]}
    assert {path.name for path in Path("out/_noise").iterdir()} == noise != set()


def test_whoever_has_seen_enough_ends_it(pictures):
    process = subprocess.Popen(
        DETECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    first, *more = map(line, files())
    process.stdin.write(first)
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["source"] == str(files()[0])
    process.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        for path in more:
            process.stdin.write(path)
            process.stdin.flush()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read().startswith(b"note: 10 classes: circle, ")
    process.stderr.close()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


def test_nothing_on_standard_input_is_no_image(piped):
    result = piped(b"")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("error: nothing was judged: there was no image.\n")


def test_pictures_on_standard_input_are_one_line(piped):
    fails(piped(files()[0].read_bytes()), "has pictures, and '-' reads paths: name the files")


def test_a_closed_standard_input_is_one_line(tmp_path):
    result = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *DETECT], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert result.returncode == 2
    assert result.stderr == "error: standard input is closed: nothing comes for '-'.\n"
