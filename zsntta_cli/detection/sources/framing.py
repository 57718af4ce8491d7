"""Find the end of a picture in a stream of bytes, by its format: PNG, JPEG, PPM, PGM, BMP.

Bytes are read up to the end of a frame and no further: it is complete as soon as its last byte has
come. A frame that claims more bytes than allowed is refused at once.
"""

import re
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from zsntta_cli.errors import DatasetError

LARGEST_FRAME = 2**28  # bytes: 8K in 16 bit has 200 MB
HEAD = 4096  # bytes within which it is to be seen what comes, and where a PPM's head ends
_PIECE = 2**16  # bytes of a pipe at a time


class DamagedFrameError(Exception):
    """A frame violates its format; the next may begin `at` this many bytes from its start."""

    def __init__(self, reason: str, at: int = 1) -> None:
        super().__init__(reason)
        self.at = at


class Incoming:
    """Incoming bytes, of which some are inspected before they are taken."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        """Read with a function that returns at most as many bytes as asked, none at the end."""
        self._read, self.held = read, bytearray()
        self._is_done = False

    def has(self, count: int) -> bool:
        """Whether `count` bytes come; wait until they are held, or until the end."""
        while len(self.held) < count:
            if not (piece := self._next(_PIECE)):
                return False
            self.held += piece
        return True

    def need(self, count: int, at: int = 1) -> None:
        """Wait for `count` bytes of a frame; if it is damaged, the next may begin at `at`.

        Raises:
            DamagedFrameError: the number exceeds that of any frame, or nothing more comes.
        """
        if count > LARGEST_FRAME:
            raise DamagedFrameError(f"it has {count:,} bytes or more, which is too much", at)
        if not self.has(count):
            raise DamagedFrameError("it is cut off", at)

    def take(self, count: int) -> bytes:
        """Take the next bytes, which are held."""
        with memoryview(self.held) as held:
            content = bytes(held[:count])
        del self.held[:count]
        return content

    def piece(self, most: int) -> bytes:
        """Take all held bytes, or else the next ones."""
        return self.take(len(self.held)) if self.held else self._next(most)

    def _next(self, most: int) -> bytes:
        """The next bytes; after the end nothing is read, as a terminal would continue."""
        piece = b"" if self._is_done else self._read(most)
        self._is_done = not piece
        return piece

    def is_of_frames(self) -> bool:
        """Whether the bytes are frames, and not paths of images.

        Raises:
            DatasetError: the bytes are neither, judged by the first ones.
        """
        kind = kind_of(self, (*KINDS, *_FOREIGN))
        if kind and kind.size is None:
            raise DatasetError(
                f"standard input is {kind.name}: must be paths, or frames as PNG, JPEG, PPM or "
                f"BMP (ffmpeg -i FILE -f image2pipe -c:v png -)."
            )
        return kind is not None


class FrameKind(NamedTuple):
    """A format: how it begins, how its incomplete beginning looks, and how long a frame is."""

    name: str
    begins: re.Pattern[bytes]
    may_begin: re.Pattern[bytes]
    size: Callable[[Incoming], int] | None = None  # of what is no frame, none


def kind_of(incoming: Incoming, kinds: Sequence[FrameKind]) -> FrameKind | None:
    """The format of the next frame, by as few bytes as necessary; None if it is unknown."""
    for count in range(1, HEAD):
        if not incoming.has(count):
            return None
        head = bytes(incoming.held[:count])
        for kind in kinds:
            if kind.begins.fullmatch(head):
                return kind
        if not any(kind.may_begin.fullmatch(head) for kind in kinds):
            return None
    return None


def _png_size(incoming: Incoming) -> int:
    """The bytes of a PNG, by its chunks: length, type, data, check sum."""
    at = 8
    while True:
        incoming.need(at + 8)
        length, kind = struct.unpack_from(">I4s", incoming.held, at)
        if not (kind.isalpha() and kind.isascii()):
            raise DamagedFrameError("it has a damaged chunk")
        at += 12 + length
        incoming.need(at)
        if kind == b"IEND":
            return at


_ALONE = {0x01, *range(0xD0, 0xD8)}  # markers of a JPEG that no segment follows


def _jpeg_size(incoming: Incoming) -> int:
    """The bytes of a JPEG, by its segments; previews in them are skipped."""
    held, at = incoming.held, 2
    while True:
        incoming.need(at + 2, at)
        marker = held[at + 1]
        if held[at] != 0xFF or marker in (0x00, 0xD8):
            raise DamagedFrameError("it has a damaged segment", at)
        if marker == 0xD9:  # the end
            return at + 2
        if marker == 0xFF:  # padding
            at += 1
            continue
        at += 2
        if marker not in _ALONE:
            incoming.need(at + 2, at)
            at += int.from_bytes(held[at : at + 2], "big")
            incoming.need(at, at)
        if marker == 0xDA:
            at = _scan_end(incoming, at)


def _scan_end(incoming: Incoming, at: int) -> int:
    """The end of the data of a JPEG's scan; FF00 and restarts belong to it."""
    held = incoming.held
    while True:
        place = held.find(b"\xff", at)
        at = len(held) if place < 0 else place
        incoming.need(at + 2, at)
        if held[at] != 0xFF:
            continue
        if held[at + 1] == 0x00 or held[at + 1] in _ALONE:
            at += 2
        elif held[at + 1] == 0xFF:
            at += 1
        else:
            return at


_GAP = rb"(?:\s|#[^\n]{0,500}\n)"  # between the words of a PPM's head: spaces and comments
_PNM_SO_FAR = re.compile(rb"P|P[56](?:" + _GAP + rb"(?:\d|" + _GAP + rb")*)?(?:#[^\n]*)?")
_PNM = re.compile(rb"P([56])" + 3 * (_GAP + rb"+(\d{1,10})") + rb"\s")


def _pnm_size(incoming: Incoming) -> int:
    """The bytes of a PPM (P6) or PGM (P5), by its head."""
    head = _PNM.match(incoming.held)
    assert head
    form, width, height, most = map(int, head.groups())
    end = head.end()
    del head  # which would keep what has come from growing
    if not (width and height and 0 < most < 2**16):
        raise DamagedFrameError(f"it says {width} x {height} pixels of values up to {most}")
    size = end + width * height * (3 if form == 6 else 1) * (2 if most > 255 else 1)
    incoming.need(size)
    return size


def _bmp_size(incoming: Incoming) -> int:
    """The bytes of a BMP, by its head."""
    size = int.from_bytes(incoming.held[2:6], "little")
    if size < 26:
        raise DamagedFrameError(f"it says that it has {size} bytes")
    incoming.need(size)
    return size


def _signed(
    name: str, signature: bytes, size: Callable[[Incoming], int] | None = None
) -> FrameKind:
    """A format that begins with a fixed signature."""
    parts = (re.escape(signature[:count]) for count in range(1, len(signature)))
    return FrameKind(name, re.compile(re.escape(signature)), re.compile(b"|".join(parts)), size)


KINDS = (
    _signed("PNG", b"\x89PNG\r\n\x1a\n", _png_size),
    _signed("JPEG", b"\xff\xd8\xff", _jpeg_size),
    FrameKind("PPM", _PNM, _PNM_SO_FAR, _pnm_size),
    FrameKind("BMP", re.compile(rb"(?s)BM.{4}\0{4}"),
              re.compile(rb"(?s)B|BM.{0,4}|BM.{4}\0{1,3}"), _bmp_size),
)  # fmt: skip
_FOREIGN = (
    FrameKind("a WebP image or an AVI video", re.compile(rb"(?s)RIFF.{4}(?:WEBP|AVI )"),
              re.compile(rb"(?s)R|RI|RIF|RIFF.{0,4}|RIFF.{4}[WA][EV]?[BI]?")),
    FrameKind("an MP4 video or a HEIF image", re.compile(rb"(?s)\0\0\0.ftyp"),
              re.compile(rb"(?s)\0{1,3}|\0\0\0.f?t?y?")),
    _signed("a Matroska or WebM video", b"\x1aE\xdf\xa3"),
    _signed("a GIF", b"GIF8"),
    _signed("raw YUV4MPEG2 video", b"YUV4MPEG2 "),
)  # fmt: skip
