"""Frames in a stream of bytes: where they end, whatever comes between, and in whatever pieces."""

import io
import struct
import threading
import tracemalloc
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from PIL import Image

from zsntta_cli.detection.sources import frames as frames_module
from zsntta_cli.detection.sources.frames import framed
from zsntta_cli.detection.sources.framing import Incoming
from zsntta_cli.errors import DatasetError


def image(number, size=(9, 7), mode="RGB"):
    pixels = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), np.uint8)
    return Image.fromarray(pixels).convert(mode)


def coded(form, number=0, mode="RGB", **more):
    content = io.BytesIO()
    image(number, mode=mode).save(content, form, **more)
    return content.getvalue()


PNG, JPEG, PPM, BMP = (coded(form, i) for i, form in enumerate(("png", "jpeg", "ppm", "bmp")))
PGM = coded("ppm", 4, "L")
RESTARTS = coded("jpeg", 5, quality=95, restart_marker_blocks=1)
PROGRESSIVE = coded("jpeg", 6, progressive=True)
PREVIEW = JPEG[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(RESTARTS)) + RESTARTS + JPEG[2:]
PPM_16 = b"P6 # by hand\n#\n9 7 # pixels\n65535\n" + bytes(range(189)) * 2
ALL = (PNG, JPEG, PPM, BMP, PGM, RESTARTS, PROGRESSIVE, PREVIEW, PPM_16)


def reader(pieces):
    left = iter(pieces)
    return lambda most: next(left, b"")


def read(*pieces, **more):
    """Items of what comes in these pieces."""
    incoming = Incoming(reader(pieces))
    assert more.get("raw") or incoming.is_of_frames()
    return [item for items in framed(incoming, **more) for item in items]


def contents(items):
    """The bytes of frames, and the errors of others."""
    found = []
    for item in items:
        try:
            found.append(item.load().data)
        except OSError as error:
            found.append(str(error))
    return found


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    chosen=st.lists(st.sampled_from(ALL), min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 4000), max_size=12),
)
def test_frames_are_those_that_were_written_in_whatever_pieces_they_come(chosen, cuts):
    whole = b"".join(chosen)
    ends = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[a:b] for a, b in pairwise(ends)]
    items = read(*pieces)
    assert contents(items) == chosen
    assert [item.frame for item in items] == list(range(len(chosen)))
    assert {(item.source, item.time_s, item.file, item.is_kept) for item in items} == {
        ("-", None, None, False)
    }


def test_bytes_one_by_one_and_pixels():
    whole = b"".join(ALL)
    items = read(*(whole[i : i + 1] for i in range(len(whole))))
    assert contents(items) == list(ALL)
    for i in (0, 2, 3):
        assert items[i].load().image().tobytes() == image(i).tobytes()
    assert [item.load().image().size for item in items] == [(9, 7)] * len(ALL)


@pytest.mark.parametrize("frame", ALL)
def test_a_frame_is_there_when_its_last_byte_has_come(frame):
    """Nothing that follows is waited for: a camera's next frame may be an hour away."""
    more = threading.Event()
    pieces = iter([frame[:-1], frame[-1:]])

    def read_piece(_):
        piece = next(pieces, None)
        if piece is None:
            more.wait(60)
            return b""
        return piece

    incoming = Incoming(read_piece)
    assert incoming.is_of_frames()
    batches = framed(incoming)
    [item] = next(batches)
    assert item.load().data == frame
    more.set()
    assert list(batches) == []


@pytest.mark.parametrize(
    "text",
    [
        b"a.png\n", b"P", b"P6\n1.png\n", b"P6\n", b"P5.ppm\nP6 2\n", b"BM", b"BM.bmp\nBMW.png\n",
        b"\xff", b"\xff.png\n", b"\x89PNG.png\n", b"RIFF\n", b"G.gif\n", b"GIF.gif\0", b"", b"\n",
        b"\0a.png\0", b"P6#.png\n",
    ],
)  # fmt: skip
def test_paths_are_no_frames_and_stay_whole(text):
    incoming = Incoming(reader([text[i : i + 1] for i in range(len(text))]))
    assert not incoming.is_of_frames()
    assert b"".join(iter(lambda: incoming.piece(2**16), b"")) == text


def test_a_path_is_answered_when_its_line_is_there():
    def closed(_):
        raise AssertionError("one waits for more")

    for line in (b"a.png\n", b"Photo.png\n", b"P6.png\n", b"BMW.png\n", b"Gif.gif\n", b"RI.png\n"):
        pieces = iter([line])
        incoming = Incoming(lambda most, it=pieces: next(it, None) or closed(most))
        assert not incoming.is_of_frames()
        assert incoming.piece(2**16) == line


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"RIFF\x10\0\0\0WEBPVP8 ", "a WebP image or an AVI video"),
        (b"\0\0\0\x20ftypisom", "an MP4 video or a HEIF image"),
        (b"\x1aE\xdf\xa3\x01", "a Matroska or WebM video"),
        (b"GIF89a", "a GIF"),
        (b"YUV4MPEG2 W640", "raw YUV4MPEG2 video"),
    ],
)
def test_a_whole_file_on_standard_input_is_one_line(head, kind):
    with pytest.raises(DatasetError, match=f"standard input is {kind}: must be paths, or frames"):
        Incoming(reader([head])).is_of_frames()


def chunk(kind, data, length=None):
    return struct.pack(">I4s", len(data) if length is None else length, kind) + data + b"crc!"


HUGE = {
    "a PNG's chunk": PNG[:33] + chunk(b"IDAT", b"", 2**31),
    "a PNG's chunk of 4 GB": PNG[:33] + chunk(b"IDAT", b"", 2**32 - 1),
    "a PPM of 10^9 x 10^9": b"P6 1000000000 1000000000 255\n",
    "a PGM of 10^9 x 10^9 in 16 bit": b"P5 1000000000 1000000000 65535\n",
    "a BMP of 4 GB": b"BM\xff\xff\xff\xff\0\0\0\0" + BMP[10:],
}


@pytest.mark.parametrize("name", HUGE)
def test_what_claims_to_be_huge_is_refused_at_once_and_the_next_frame_is_read(name):
    huge = HUGE[name]
    after = {"PNG": PNG, "PPM": PPM, "PGM": PGM, "BMP": BMP}[name.split()[1].removesuffix("'s")]
    tracemalloc.start()
    items = read(huge, after)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    error, *rest = contents(items)
    assert "bytes or more, which is too much" in error
    assert rest == [after]
    assert most < 2**22


DAMAGED = {
    "a PNG without its end": (PNG[:-12] + PNG, "it has a damaged chunk"),
    "a PNG that lacks bytes": (PNG[:60] + PNG[70:] + PNG, "it "),
    "a JPEG without its end": (JPEG[:-2] + JPEG, "it has a damaged segment"),
    "a JPEG cut in its scan": (JPEG[:-40] + JPEG, "it has a damaged segment"),
    "a preview's JPEG cut in its scan": (PREVIEW[:-40] + JPEG, "it has a damaged segment"),
    "a JPEG whose segment swallows more": (JPEG[:4] + b"\xff\xff" + b"x" * 65533 + JPEG,
                                           "it has a damaged segment"),
    "a PPM without pixels": (b"P6 0 9 255\n" + PPM, "0 x 9 pixels of values up to 255"),
    "a PPM of no values": (b"P6 9 9 70000\n" + PPM, "9 x 9 pixels of values up to 70000"),
    "a BMP of 3 bytes": (b"BM\3\0\0\0\0\0\0\0" + BMP, "it says that it has 3 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_frame_is_an_item_that_says_so_and_the_next_one_is_read(name):
    content, reason = DAMAGED[name]
    items = read(content)
    found = contents(items)
    assert reason in found[0]
    assert isinstance(found[-1], bytes)
    assert [item.frame for item in items] == list(range(len(items)))
    assert len(items) == 2


@pytest.mark.parametrize("frame", ALL)
def test_a_last_frame_that_is_cut_off_at_any_byte(frame):
    for end in (*range(20, len(frame), 23), len(frame) - 1):
        whole, last = contents(read(frame, frame[:end]))
        assert whole == frame
        assert last.startswith("it is cut off") or "no frame begins here" in last


@pytest.mark.parametrize("frame", ALL)
@pytest.mark.parametrize("garbage", [b"\x80", b"warning: P6 is late\n", bytes(range(256)) * 999])
def test_garbage_between_frames_is_an_item_without_a_number(frame, garbage):
    items = read(frame, garbage, frame, garbage)
    assert [item.frame for item in items] == [0, None, 1, None]
    first, told, second, last = contents(items)
    assert first == second == frame
    assert told == last
    assert told.startswith("no frame begins here")


def test_padding_between_frames_is_nothing():
    assert contents(read(JPEG + b"\0" * 70_000, JPEG + b"\r\n", PNG)) == [JPEG, JPEG, PNG]


def test_raw_frames_of_a_size():
    whole = [image(i).tobytes() for i in range(3)]
    items = read(*whole, whole[0][:100], raw=(9, 7), fps=4)
    found = [item.load().image().tobytes() for item in items[:3]]
    assert found == whole
    assert [(item.frame, item.time_s) for item in items] == [(0, 0), (1, 0.25), (2, 0.5), (3, 0.75)]
    assert contents(items)[3] == "it is cut off: 100 of 189 bytes"


def test_what_was_read_ahead_is_bounded_and_comes_at_once(monkeypatch):
    monkeypatch.setattr(frames_module, "_AHEAD", 3 * len(PNG))
    taken, waits = [], threading.Semaphore(0)

    def read_piece(_):
        taken.append(1)
        waits.release()
        return PNG if len(taken) <= 20 else b""

    incoming = Incoming(read_piece)
    assert incoming.is_of_frames()
    batches = framed(incoming)
    assert 1 <= len(next(batches)) <= 3
    for _ in range(4):
        waits.acquire(timeout=60)
    sizes = [len(batch) for batch in batches]
    assert max(sizes) <= 3
    assert len(taken) == 21


def test_what_goes_wrong_while_reading_is_told_behind_what_came():
    def read_piece(_):
        if not pieces:
            raise DatasetError("cannot read standard input (gone).")
        return pieces.pop()

    pieces = [PNG]
    incoming = Incoming(read_piece)
    assert incoming.is_of_frames()
    batches = framed(incoming)
    assert contents(next(batches)) == [PNG]
    with pytest.raises(DatasetError, match="gone"):
        next(batches)


def test_pixels_are_let_go():
    [item] = read(PNG)
    item.drop_content()
    with pytest.raises(OSError, match="a frame of a video, which is not kept"):
        item.load()


@pytest.mark.parametrize("text", [b"", b"P6", PNG, PNG[:20]])
def test_the_end_is_read_once_as_a_terminal_goes_on_after_it(text):
    pieces = [text, b""] if text else [b""]
    incoming = Incoming(lambda _: pieces.pop(0))  # IndexError where it is asked again
    if incoming.is_of_frames():
        assert [item for items in framed(incoming) for item in items]
    else:
        assert b"".join(iter(lambda: incoming.piece(9), b"")) == text


def test_endless_garbage_takes_no_memory():
    garbage = np.random.default_rng(0).bytes(2**16)
    left = iter([PNG, *[garbage] * 400, PNG])
    tracemalloc.start()
    items = read_lazily(left)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [item.frame for item in items][:2] == [0, None]
    assert contents(items)[-1] == PNG
    assert most < 2**22


def read_lazily(left):
    incoming = Incoming(lambda _: next(left, b""))
    assert incoming.is_of_frames()
    return [item for items in framed(incoming) for item in items]


def test_a_stream_of_heads_that_never_end_is_passed_over_quickly():
    """Comments of a PPM's head are bounded: else each of them would be read to the end."""
    items = read(PPM, b"P6 #" * 2**16 + b"\nx\n", PPM)
    assert contents(items) == [PPM, contents(items)[1], PPM]
