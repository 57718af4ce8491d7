"""Frames on standard input, as `zsntta detect -` is typed behind a pipe."""

import contextlib
import io
import json
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest
from made import TINY, ZSNTTA, fails
from PIL import Image

from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.detection import sources

SHAPES = ("--classes", ",".join(render("shapes").class_names), *TINY)
DETECT = [ZSNTTA, "detect", "-", *SHAPES]


def files():
    return sorted(Path("pictures").rglob("*.png"))


def rows(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def are_alike(found, expected):
    """Whether verdicts are the same; an encoder's last digits go by the size of its batches."""
    assert [row["class"] for row in found] == [row["class"] for row in expected]
    assert [row["stage"] for row in found] == [row["stage"] for row in expected]
    scores = [[row["score"] for row in these] for these in (found, expected)]
    return scores[0] == pytest.approx(scores[1], abs=0.01)


@pytest.fixture
def piped(pictures, monkeypatch):
    """Run the command line with something on standard input."""

    def run(content, *arguments):
        file = io.BytesIO(content)
        monkeypatch.setattr(sources, "_standard_input", file.read)
        return pictures("detect", "-", *SHAPES, *arguments)

    return run


def kept():
    """How much the store of features holds."""
    with contextlib.closing(sqlite3.connect("features/tiny/images.sqlite")) as store:
        tables = store.execute("select name from sqlite_master where type = 'table'").fetchall()
        return {name: store.execute(f"select count(*) from {name}").fetchone() for [name] in tables}


def test_one_by_one_each_frame_is_judged_when_it_has_come(pictures):
    names, count = files(), 8
    expected = rows(pictures("detect", *names[:count], *SHAPES, "--decide", "arrival"))
    before = kept()
    process = subprocess.Popen(
        [*DETECT, "--fps", "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    found = []
    with process:
        for path in names[:count]:
            process.stdin.write(path.read_bytes())
            process.stdin.flush()
            found.append(json.loads(process.stdout.readline()))
        process.stdin.write(names[count].read_bytes()[:-9])
        process.stdin.close()
        last = json.loads(process.stdout.read())
        assert process.stderr.read().decode().startswith(f"{count + 1} images, ")
    assert process.returncode == 0
    assert are_alike(found, expected)
    assert [(row["source"], row["frame"], row["time_s"]) for row in found] == [
        ("-", i, i / 4) for i in range(count)
    ]
    assert {row["content"] for row in found} == {None}
    assert (last["frame"], last["error"]) == (count, "it is cut off")
    assert kept() == before, "a camera's frames would fill the disk"


def test_ctrl_c_keeps_the_frames_that_were_decided(pictures):
    process = subprocess.Popen(
        [*DETECT, "--print0", "--out", "rows.jsonl", "--copy-to", "out", "--flag", "60%"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        for path in files()[:6]:
            process.stdin.write(path.read_bytes())
        process.stdin.flush()
        assert process.stdout.read(12) == b"-\0" * 6
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode().splitlines()[-1].startswith("interrupted")
    found = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [row["frame"] for row in found] == list(range(6))
    names = {f"frame-{row['frame']:06}.png" for row in found if row["noise"]}
    assert {path.name for path in Path("out/_noise").iterdir()} == names != set()


def test_whoever_has_seen_enough_of_a_camera_ends_it(pictures):
    frame = files()[0].read_bytes()
    process = subprocess.Popen(
        DETECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdin.write(frame)
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["frame"] == 0
    process.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        while True:  # a camera does not end
            process.stdin.write(frame)
            process.stdin.flush()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


def test_frames_of_each_form_are_judged_alike(piped):
    images = [Image.open(path).convert("RGB") for path in files()[::4]]
    found = {}
    for form in ("png", "ppm", "bmp"):
        content = io.BytesIO()
        for image in images:
            image.save(content, form)
        found[form] = rows(piped(content.getvalue()))
    size = "{}x{}".format(*images[0].size)
    raw = b"".join(image.tobytes() for image in images)
    found["raw"] = rows(piped(raw, "--raw", size))
    assert len(found["png"]) == len(images)
    for form in ("ppm", "bmp", "raw"):
        assert are_alike(found[form], found["png"]), form


def test_in_hindsight_frames_are_decided_as_a_folder_and_cannot_be_saved(pictures, piped):
    content = b"".join(path.read_bytes() for path in files())
    result = piped(content, "--decide", "hindsight", "--copy-to", "out", "--flag", "6")
    found = rows(result)
    of_folder = rows(pictures("detect", "pictures", *SHAPES, "--flag", "6"))
    assert are_alike(found, of_folder)
    assert (
        "6 flagged frames are not saved: in hindsight, what came on standard input is gone"
        in result.stderr
    )
    assert "Add --decide arrival" in result.stderr
    assert not Path("out/_noise").exists()


def test_what_cannot_be_decoded_is_a_row_and_the_stream_goes_on(piped):
    first, second, third = (path.read_bytes() for path in files()[:3])
    damaged = bytearray(second)
    damaged[second.index(b"IDAT") + 8 : second.index(b"IDAT") + 20] = b"\0" * 12
    found = rows(piped(first + damaged + b"garbage" + third))
    assert [(row["frame"], row["error"] is None) for row in found] == [
        (0, True), (1, False), (None, False), (2, True),
    ]  # fmt: skip
    assert found[2]["error"].startswith("no frame begins here")


def test_nothing_on_standard_input_is_no_image(piped):
    result = piped(b"")
    assert rows(result) == []
    assert result.stderr.startswith("0 images, 0 flagged as noise")


def test_frames_have_a_page_without_pictures(piped):
    content = b"".join(path.read_bytes() for path in files()[:6])
    assert len(rows(piped(content, "--review", "r.html"))) == 6
    assert "<img" not in Path("r.html").read_text()


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("640", "raw is '640', must be WIDTHxHEIGHT, as 640x480"),
        ("0x480", "raw is 0 x 480, must be a width and a height"),
        ("999999999x999999999", "raw is 999,999,999 x 999,999,999, must be"),
    ],
)
def test_a_size_that_is_none(piped, raw, said):
    fails(piped(b"", "--raw", raw), said, code=2)


def test_raw_frames_come_on_standard_input(pictures):
    fails(pictures("detect", "pictures", *SHAPES, "--raw", "9x9"),
          "raw frames come on standard input: name '-' as the source", code=2)  # fmt: skip


def test_a_whole_video_on_standard_input_is_one_line(piped):
    fails(piped(b"\0\0\0\x20ftypisom" * 9),
          "standard input is an MP4 video or a HEIF image: must be paths, or frames")  # fmt: skip


def copies(answer="_noise"):
    return {path.name: path.read_bytes() for path in Path("out", answer).glob("*.png")}


def test_frames_of_another_run_stay_beside_those_of_this_one(piped):
    """They have the same numbers, and nobody can have them again."""
    contents = [path.read_bytes() for path in files()]
    given = ("--copy-to", "out", "--flag", "50%", "--fps", "1")
    rows(piped(b"".join(contents[:12]), *given))
    first = copies()
    assert len(first) > 2
    rows(piped(b"".join(contents[:12]), *given))
    assert copies() == first, "the same frames are there already"
    found = rows(piped(b"".join(contents[30:42]), *given))
    second = copies()
    assert second.items() > first.items()
    assert len(second) == len(first) + sum(row["noise"] for row in found)
    assert any(name.endswith("-2.png") for name in second)


def test_what_would_be_saved_is_said_and_frames_are_neither_linked_nor_moved(piped):
    content = b"".join(path.read_bytes() for path in files()[:12])
    for way in ("--link-to", "--move-to"):
        result = piped(content, way, f"out{way}", "--flag", "50%")
        flagged = sum(row["noise"] for row in rows(result))
        done = "linked" if way == "--link-to" else "moved"
        assert f"{flagged} flagged frames are not {done}: --copy-to saves them" in result.stderr
        assert not list(Path(f"out{way}").rglob("*.png"))
    result = piped(content, "--copy-to", "out", "--flag", "50%", "--dry-run")
    assert result.exit_code == 0, result.output
    assert not Path("out").exists()
    assert "out/_noise/frame-00000" in result.output


def test_a_closed_standard_input_is_one_line(tmp_path):
    result = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *DETECT], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert result.returncode == 2
    assert result.stderr == "error: standard input is closed: nothing comes for '-'.\n"
