"""An image that is to be judged: what it is called, and how its content is had."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import NoReturn

from PIL import Image

from zsntta_cli.datasets.decoding import Decoded, as_shown
from zsntta_cli.datasets.images import SUFFIXES
from zsntta_cli.files import read_input

LARGEST = 2**30  # bytes of a file: more is no image
# Photos that cannot be read without a plug-in are rows that say so, rather than left out.
PHOTOS = SUFFIXES | {".jfif", ".heic", ".heif", ".avif", ".jxl", ".jp2"}


@dataclass(frozen=True)
class Content:
    """What an image holds: the digest that its features are kept under, and its pixels."""

    digest: bytes
    decoded: Callable[[], Decoded]  # of a damaged one PIL raises nearly anything
    data: bytes = b""  # as it lies on disk

    def image(self) -> Image.Image:
        """Its pixels in RGB, as a viewer shows them."""
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
        """What its stamp is kept under."""
        return os.fsencode(f"{self.file and os.path.abspath(self.file)}\0{self.member}")

    def without_content(self) -> "Item":
        """The same, but for pixels that it holds in memory."""
        if self.frame is None:
            return self
        return replace(self, load=partial(refuse, "it is a frame of a video, which is not kept"))


def of_file(path: Path) -> Item:
    """A file, whatever it holds."""
    return Item(str(path), partial(_read, path), path)


def failed(source: str, error: str) -> Item:
    """Something that cannot be read; `error` says why."""
    return Item(source, partial(refuse, error))


def content_of(data: bytes) -> Content:
    """The content of an image file."""
    return Content(hashlib.sha256(data).digest(), partial(as_shown, data), data)


def content_of_pixels(image: Image.Image) -> Content:
    """The content of an image that is decoded already."""
    head = f"{image.mode} {image.size}\0".encode()  # no image file begins like this
    return Content(hashlib.sha256(head + image.tobytes()).digest(), lambda: Decoded(image))


def _read(path: Path) -> Content:
    return content_of(read_input(path, LARGEST))


def refuse(error: str) -> NoReturn:
    """The load of an item that cannot be read."""
    raise OSError(error)
