"""Frames on standard input: concatenated pictures, as `ffmpeg -f image2pipe` writes them."""

import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from PIL import Image

from zsntta_cli.detection.sources.framing import HEAD, KINDS, DamagedFrameError, Incoming, kind_of
from zsntta_cli.detection.sources.item import (
    PIPE,
    Content,
    HeldContent,
    Item,
    content_of,
    content_of_pixels,
    refuse,
)

_AHEAD = 2**26  # bytes of frames that are read while others are encoded, and one frame more
_MOST = 64  # frames at a time
_PADDING = b"\0\r\n"  # between frames
_NO_FRAME = "no frame begins here: what comes is left out up to the next one"


class _Piece(NamedTuple):
    """A frame, or data between frames, which is refused."""

    load: Callable[[], Content]
    size: int = 0  # bytes that it holds
    is_frame: bool = True


def framed(
    incoming: Incoming, raw: tuple[int, int] | None = None, fps: float | None = None
) -> Iterator[list[Item]]:
    """Frames as they come, all that are available at a time; `raw` ones by width and height.

    With `fps`, their rate, they have times. A damaged frame is an item that cannot be read, and so
    is data between frames, which has no number.
    """
    ahead = _Ahead()
    pieces = _raw(incoming, *raw) if raw else _pictures(incoming)
    threading.Thread(target=ahead.fill, args=(_numbered(pieces, fps),), daemon=True).start()
    while items := ahead.take():
        yield items


def _numbered(pieces: Iterator[_Piece], fps: float | None) -> Iterator[tuple[Item, int]]:
    number = 0
    for load, size, is_frame in pieces:
        if is_frame:
            time = number / fps if fps else None
            yield Item(PIPE, load, frame=number, time_s=time, is_kept=False), size
            number += 1
        else:
            yield Item(PIPE, load), size


def _pictures(incoming: Incoming) -> Iterator[_Piece]:
    """Encoded frames; after a damaged one the next frame of its kind is searched for."""
    begins = KINDS[0].begins
    while _skip_padding(incoming):
        kind = kind_of(incoming, KINDS)
        at = 1
        try:
            if kind is None or kind.size is None:
                yield _Piece(partial(refuse, _NO_FRAME), is_frame=False)
            else:
                begins = kind.begins
                data = incoming.take(kind.size(incoming))
                yield _Piece(HeldContent(content_of(data)), len(data))
                continue
        except DamagedFrameError as error:
            yield _Piece(partial(refuse, str(error)))
            at = error.at
        if not _skip_to(incoming, begins, at):
            return


def _skip_padding(incoming: Incoming) -> bool:
    """Skip NULs and line ends between frames, as cameras write them; False at the end."""
    while incoming.has(1):
        if incoming.held[0] not in _PADDING:
            return True
        del incoming.held[: len(incoming.held) - len(incoming.held.lstrip(_PADDING))]
    return False


def _skip_to(incoming: Incoming, begins: re.Pattern[bytes], at: int) -> bool:
    """Skip what comes before the next frame, from `at` on; False if there is none."""
    held = incoming.held
    while True:
        head = begins.search(held, at)
        start = head.start() if head else max(at, len(held) - HEAD)
        is_there = head is not None
        del head, held[:start]
        if is_there:
            return True
        at = 0
        if not incoming.has(len(held) + 1):
            return False


def _raw(incoming: Incoming, width: int, height: int) -> Iterator[_Piece]:
    """Frames of RGB, one byte per value, as `-f rawvideo -pix_fmt rgb24` writes them."""
    size = 3 * width * height
    while incoming.has(size):
        image = Image.frombytes("RGB", (width, height), incoming.take(size))
        yield _Piece(HeldContent(content_of_pixels(image)), size)
    if incoming.held:
        reason = f"it is cut off: {len(incoming.held):,} of {size:,} bytes"
        yield _Piece(partial(refuse, reason))


class _Ahead:
    """Frames that are read while others are encoded, as many as fit in memory."""

    def __init__(self) -> None:
        self._items, self._bytes, self._is_done = list[Item](), 0, False
        self._error: Exception | None = None
        self._changed = threading.Condition()

    def fill(self, items: Iterator[tuple[Item, int]]) -> None:
        """Read until the end, in a thread of its own."""
        try:
            for item, size in items:
                with self._changed:
                    self._changed.wait_for(self._has_room)
                    self._items.append(item)
                    self._bytes += size
                    self._changed.notify_all()
        except Exception as error:  # whoever takes is told
            self._error = error
        with self._changed:
            self._is_done = True
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._bytes < _AHEAD and len(self._items) < _MOST

    def take(self) -> list[Item]:
        """All frames since the last call, at least one; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._is_done)
            items, self._items, self._bytes = self._items, [], 0
            self._changed.notify_all()
        if not items and self._error:
            raise self._error
        return items
