"""Frames of videos that PyAV writes, with time stamps of any distance."""

import json
import struct
import sys
import weakref
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from made import TINY, fails
from PIL import Image

from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.detection.detecting.request import Images, Request
from zsntta_cli.detection.detecting.run import detect_run
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.sources import batches, item, video
from zsntta_cli.progress import Silent
from zsntta_cli.settings import EncoderChoice

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


def frames(path):
    return [item for items in batches([str(path)]) for item in items]


# Bursts and gaps: nothing that a frame's number could be turned into a time by.
VARIABLE = [0, 40, 80, 1000, 1010, 1020, 1900, 2000, 5000, 5400, 5600, 9990, 10000]


def test_one_frame_a_second_by_the_frames_own_times(tmp_path):
    path, taken = write(tmp_path / "a.mp4", VARIABLE), [0, 3, 7, 8, 11, 12]
    found = frames(path)
    assert [item.frame for item in found] == taken
    times = [item.time_s for item in found]
    assert times == pytest.approx([VARIABLE[i] / 1000 for i in taken], abs=1e-3)
    shades = [np.asarray(item.load().image()).mean() for item in found]
    assert shades == pytest.approx([7 * i for i in taken], abs=4)
    assert {item.source for item in found} == {str(path)}


def test_a_stream_that_begins_late_keeps_its_times(tmp_path):
    found = frames(write(tmp_path / "a.mkv", [700, 1100, 1800]))
    assert [item.time_s for item in found] == pytest.approx([0.7, 1.8], abs=2e-3)


def sound(path):
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), "s16", "mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b"no video" * 100), "Invalid data"),
        (lambda path: path.write_bytes(b""), "Invalid data|End of file"),
        (sound, "it has no pictures"),
    ],
)
def test_what_is_no_video_is_an_item_that_says_so(tmp_path, make, said):
    make(tmp_path / "a.mkv")
    [item] = frames(tmp_path / "a.mkv")
    with pytest.raises(OSError, match=said):
        item.load()


def test_a_video_that_is_cut_off_gives_what_is_there(tmp_path):
    path = write(tmp_path / "a.mkv", range(0, 20_000, 100), lambda i: i % 256)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    *found, last = frames(path)
    assert 3 <= len(found) < 20
    assert [item.frame for item in found][:3] == [0, 10, 20]
    with pytest.raises(OSError, match=r"the last \d+ of its 20 seconds are lost"):
        last.load()


@pytest.mark.parametrize("ending", ["mkv", "mp4", "avi", "mov", "ts"])
@pytest.mark.parametrize("step", [40, 1000, 5000])
def test_a_whole_video_lacks_nothing(tmp_path, ending, step):
    path = write(tmp_path / f"a.{ending}", range(0, 12 * step, step))
    assert None not in [item.frame for item in frames(path)]


def test_frames_are_rows_and_repeats_keep_the_verdict_of_the_first(pictures, tmp_path):
    write(tmp_path / "a.mp4", range(0, 24_000, 500), lambda i: 0 if i < 24 else 255)
    result = pictures("detect", "a.mp4", "--classes", "star,circle", *TINY)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["frame"] for row in rows] == list(range(0, 48, 2))
    assert [row["time_s"] for row in rows] == pytest.approx(np.arange(24), abs=1e-3)
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


def test_a_batch_has_few_pixels_however_large_frames_are(tmp_path, monkeypatch):
    path = write(tmp_path / "a.mp4", range(0, 100_000, 1000))
    [*full, _] = batches([str(path)])
    assert {len(items) for items in full} == {32}
    monkeypatch.setattr(video, "_PIXELS", 5 * 32 * 32)
    sizes = [len(items) for items in batches([str(path)])]
    assert sizes == [5] * 20


def test_in_hindsight_no_pixels_are_held(tmp_path, monkeypatch):
    """An hour of frames takes the memory of its features."""
    content = item.content_of_pixels
    held, most = [], []

    def watched(image, *note):
        held.append(weakref.ref(image))
        most.append(sum(one() is not None for one in held))
        return content(image, *note)

    monkeypatch.setattr(video, "content_of_pixels", watched)
    monkeypatch.setattr(video, "_PIXELS", 4 * 32 * 32)
    path = write(tmp_path / "a.mp4", range(0, 200_000, 1000))
    encoding = Encoding(EncoderChoice("tiny"), tmp_path / "features", "cpu", 2, Silent())
    request = Request(images=Images(sources=(str(path),)), classes=("star", "circle"))
    with encoding.store:
        [batch] = detect_run(request, encoding).batches()
    assert len(batch.rows) == len(most) == 200
    assert max(most) <= 9, "of two batches of four, and the next frame"
    with pytest.raises(OSError, match="not kept"):
        batch.items[0].load()


def turned(path, degrees):
    """Write into an MP4 how its frames are turned when they are shown."""
    content = bytearray(path.read_bytes())
    at = content.index(b"tkhd") + 4 + 40
    a, b = {90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees]
    matrix = (a, b, 0, -b, a, 0, 0, 0)
    content[at : at + 36] = struct.pack(">8iI", *(65536 * v for v in matrix), 2**30)
    path.write_bytes(content)


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_frames_are_turned_as_their_video_says(tmp_path, degrees):
    pixels = np.zeros((32, 48, 3), np.uint8)
    pixels[:16, :24] = 255  # above on the left
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=1, width=48, height=32, pix_fmt="yuv420p")
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        container.mux([*stream.encode(frame), *stream.encode()])
    [one] = frames(tmp_path / "a.mp4")
    straight = np.asarray(one.load().image())
    turned(tmp_path / "a.mp4", degrees)  # clockwise
    [one] = frames(tmp_path / "a.mp4")
    [(_, again)] = video.frames_at(tmp_path / "a.mp4", {0})
    expected = np.rot90(straight, -degrees // 90)
    assert (np.asarray(one.load().image()) == expected).all()
    assert (np.asarray(again) == expected).all()
    corner = {90: (0, -1), 180: (-1, -1), 270: (-1, 0)}[degrees]
    assert expected[corner].mean() > 200


def lossless(path, images):
    with av.open(str(path), "w") as container:
        width, height = images[0].size
        stream = container.add_stream("ffv1", rate=1, width=width, height=height, pix_fmt="bgr0")
        for image in images:
            container.mux(stream.encode(av.VideoFrame.from_image(image.convert("RGB"))))
        container.mux(stream.encode())
    return path


def shapes_and_letters():
    return [Image.open(path) for path in sorted(Path("pictures").rglob("*.png"))]


SHAPES = ("--classes", ",".join(render("shapes").class_names), *TINY)


def rows_of(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_whole_video_is_decided_in_hindsight_as_a_folder_of_its_frames_is(pictures):
    lossless("a.mkv", shapes_and_letters())
    of_folder = rows_of(pictures("detect", "pictures", *SHAPES))
    of_video = rows_of(pictures("detect", "a.mkv", *SHAPES))
    assert {row["stage"] for row in of_video} == {"adapted"}, "on arrival 60 frames are all warm-up"
    # ffv1 keeps each value; no two neighbours are alike, so that each frame is an image.
    assert [row["score"] for row in of_video] == pytest.approx([r["score"] for r in of_folder])
    assert [row["answer"] for row in of_video] == [row["answer"] for row in of_folder]


def test_frames_are_not_copied_as_a_note_says(pictures):
    lossless("a.mkv", shapes_and_letters())
    given = ("detect", "a.mkv", *SHAPES, "--copy-to", "out", "--flag", "20%")
    result = pictures(*given)
    assert len(rows_of(result)) == 60
    assert "note: 60 not copied: no files of their own." in result.stderr.splitlines()
    assert not list(Path(".").glob("out/*/*"))
