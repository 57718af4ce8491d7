"""Frames of videos that PyAV writes, with time stamps of any distance."""

import json
import sys
from fractions import Fraction

import numpy as np
import pytest
from made import TINY, fails

from zsntta_cli.detection.sources import Scan, batches

av = pytest.importorskip("av")


def write(path, times, shade=lambda i: i * 7 % 256, size=32):
    """A video of plain frames at some times in milliseconds; their shades tell them apart."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=30)
        stream.width = stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        for i, time in enumerate(times):
            pixels = np.full((size, size, 3), shade(i), np.uint8)
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def frames(path, fps):
    return [item for items in batches([str(path)], Scan(fps)) for item in items]


# Bursts and gaps: nothing that a frame's number could be turned into a time by.
VARIABLE = [0, 40, 80, 1000, 1010, 1020, 1900, 2000, 5000, 5400, 5600, 9990, 10000]


@pytest.mark.parametrize(
    ("fps", "taken"),
    [
        (1, [0, 3, 7, 8, 11, 12]),
        (2, [0, 3, 6, 7, 8, 10, 11, 12]),
        (0.25, [0, 8, 11]),
        (1000, list(range(13))),
    ],
)
def test_times_are_the_frames_own(tmp_path, fps, taken):
    path = write(tmp_path / "a.mp4", VARIABLE)
    found = frames(path, fps)
    assert [item.frame for item in found] == taken
    times = [item.time_s for item in found]
    assert times == pytest.approx([VARIABLE[i] / 1000 for i in taken], abs=1e-3)
    shades = [np.asarray(item.load().image()).mean() for item in found]
    assert shades == pytest.approx([7 * i for i in taken], abs=4)
    assert {item.source for item in found} == {str(path)}


def test_a_stream_that_begins_late_keeps_its_times(tmp_path):
    found = frames(write(tmp_path / "a.mkv", [700, 1100, 1800]), 1)
    assert [item.time_s for item in found] == pytest.approx([0.7, 1.8], abs=2e-3)


@pytest.mark.parametrize(
    ("content", "said"), [(b"no video" * 100, "Invalid data"), (b"", "Invalid data|End of file")]
)
def test_what_is_no_video_is_an_item_that_says_so(tmp_path, content, said):
    path = tmp_path / "a.mp4"
    path.write_bytes(content)
    [item] = frames(path, 1)
    with pytest.raises(OSError, match=said):
        item.load()


def test_a_video_without_pictures(tmp_path):
    with av.open(str(tmp_path / "a.mkv"), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), "s16", "mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
    [item] = frames(tmp_path / "a.mkv", 1)
    with pytest.raises(OSError, match="it has no pictures"):
        item.load()


def test_a_video_that_is_cut_off_gives_what_is_there(tmp_path):
    path = write(tmp_path / "a.mkv", range(0, 20_000, 100), lambda i: i % 256)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found = frames(path, 1)
    assert 3 <= len(found) < 20
    assert [item.frame for item in found][:3] == [0, 10, 20]


def test_frames_are_rows_and_repeats_keep_the_verdict_of_the_first(pictures, tmp_path):
    write(tmp_path / "a.mp4", range(0, 12_000, 250), lambda i: 0 if i < 24 else 255)
    result = pictures("detect", "a.mp4", "--classes", "star,circle", *TINY, "--fps", "2")
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["frame"] for row in rows] == list(range(0, 48, 2))
    assert [row["time_s"] for row in rows] == pytest.approx(np.arange(24) / 2, abs=1e-3)
    assert len({row["score"] for row in rows[:12]}) == 1
    assert len({row["score"] for row in rows[12:]}) == 1
    assert rows[0]["score"] != rows[-1]["score"]
    assert {row["rank"] for row in rows} <= {1, 2}
    assert "24 images" in result.stderr


def test_without_pyav_a_line_says_what_to_install(pictures, tmp_path, monkeypatch):
    (tmp_path / "a.mp4").touch()
    monkeypatch.setitem(sys.modules, "av", None)
    fails(pictures("detect", "a.mp4", "--classes", "star", *TINY),
          "a.mp4 is a video: pip install 'zsntta[video]' reads videos")  # fmt: skip
