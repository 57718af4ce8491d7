"""An image that is to be judged: its name, and how its content is loaded."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NoReturn

from PIL import Image

from zsntta_cli.datasets.decoding import Decoded, as_shown
from zsntta_cli.datasets.images import SUFFIXES
from zsntta_cli.files import read_input

ADDRESS = "it is an address: download it, and name the file"  # a path would lose a slash of it
PIPE = "-"  # the source that is standard input
LARGEST = 2**30  # bytes of a file: more is no image
# What calls itself a picture is a row, and one that says why where it cannot be read. What has
# another name is looked into.
PHOTOS = SUFFIXES | {
    ".jfif", ".jpe", ".mpo", ".apng", ".heic", ".heif", ".avif", ".jxl", ".jp2",
}  # fmt: skip


@dataclass(frozen=True)
class Content:
    """The content of an image: the digest under which its features are kept, and its pixels."""

    digest: bytes
    decoded: Callable[[], Decoded]  # of a damaged one PIL raises nearly anything
    data: bytes = b""  # as it lies on disk

    def image(self) -> Image.Image:
        """The pixels in RGB, as a viewer shows them."""
        return self.decoded().image


@dataclass(frozen=True)
class Item:
    """One image of a source."""

    source: str  # what a row calls it
    load: Callable[[], Content]  # OSError where it cannot be read
    file: Path | None = None  # the file it lies in, which tells whether it is still the same
    member: str = ""  # its path within an archive
    frame: int | None = None  # number in a video
    time_s: float | None = None  # in a video, by the frame's own time stamp

    @cached_property
    def key(self) -> bytes:
        """The key under which its stamp is kept."""
        return os.fsencode(f"{self.file and os.path.abspath(self.file)}\0{self.member}")

    @property
    def video(self) -> Path | None:
        """The video file of a frame, if it can be decoded again."""
        return None if self.frame is None else Path(self.source)

    def drop_content(self) -> None:
        """Release pixels that it holds in memory."""
        if isinstance(self.load, HeldContent):
            self.load.drop()


class HeldContent:
    """The content of a frame while it is in memory: it cannot be read again."""

    def __init__(self, content: Content) -> None:
        """Hold a content."""
        self._content: Content | None = content

    def __call__(self) -> Content:
        """The content; OSError after it was dropped."""
        return self._content or refuse("it is a frame of a video, which is not kept")

    def drop(self) -> None:
        """Release the content."""
        self._content = None


def of_file(path: Path) -> Item:
    """An item for a file, whatever its content."""
    return Item(str(path), partial(_read, path), path)


def failed(source: str, error: str) -> Item:
    """An item that cannot be read; `error` says why."""
    return Item(source, partial(refuse, error))


def content_of(data: bytes) -> Content:
    """The content of an image file."""
    return Content(hashlib.sha256(data).digest(), partial(as_shown, data), data)


def content_of_pixels(image: Image.Image, note: str = "") -> Content:
    """The content of an image that is already decoded; `note` says what is wrong with it."""
    head = f"{image.mode} {image.size}{note}\0".encode()  # no image file begins like this
    return Content(hashlib.sha256(head + image.tobytes()).digest(), lambda: Decoded(image, note))


def _read(path: Path) -> Content:
    return content_of(read_input(path, LARGEST))


def refuse(error: str) -> NoReturn:
    """The loading function of an item that cannot be read."""
    raise OSError(error)
