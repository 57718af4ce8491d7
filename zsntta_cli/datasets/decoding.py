"""Picture files to RGB: the only place that decides how an image is read or uses pillow_heif.

Judged images are read as a viewer shows them (`as_shown`): turned as their EXIF says, transparent
pixels on white. The paper's sets are read as published (`as_extracted`): nothing turned,
transparency dropped. Both reduce images with more than 8 bits to 8; Pillow's own conversion makes
everything above 255 white. Files that Pillow cannot read are refused with a reason.
"""

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, PngImagePlugin, UnidentifiedImageError

READING = 8  # goes up when a file gives other pixels or notes
# The notes of an image of more than 8 bits, of several pictures, and of a long one.
BROUGHT = "reduced to 8 bits"
FIRST = "only its first picture is judged"
CUT_OFF = "only its central square is judged"
_LONG = 2  # long sides in short ones, from which on the most is outside of that square
# The largest numbers of 8, 10, 12 and 16 bits: what cameras and scanners put into 16.
_LARGEST = (255, 1023, 4095, 65_535)
_BLACK = 1 / 16  # of floats from 0 to 1: where all are less, these are not their range
_HEIF = (b"he", b"mi", b"ms")  # brands of pictures coded by HEVC, ISO/IEC 23008-12, begin so
# What may lie in the place of a picture, by how it begins.
_OTHERS = {
    b"version https://git-lfs": "it is a git-lfs pointer: git lfs pull fetches the file itself",
    b"<!doctype html": "it is a web page",
    b"<html": "it is a web page",
}

# Texts of drawing programs and colour profiles in PNGs: Pillow stops at 1 MB, no viewer does.
PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY

Source = bytes | Path | Image.Image


class Decoded(NamedTuple):
    """An RGB image, and a note if more was done than reading it."""

    image: Image.Image
    note: str = ""


@contextlib.contextmanager
def limited_to(megapixels: float | None) -> Iterator[None]:
    """Refuse larger images, by default above 179 megapixels; silence Pillow's warnings.

    It applies to the whole process: Pillow refuses images of twice its own limit.
    """
    pillows = Image.MAX_IMAGE_PIXELS
    if megapixels:
        Image.MAX_IMAGE_PIXELS = int(megapixels * 10**6 / 2)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"PIL\.")
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = pillows


def as_shown(source: Source, small: tuple[int, int] | None = None) -> Decoded:
    """A picture as a viewer shows it; a JPEG is decoded no larger than `small` requires.

    Raises:
        Exception: it cannot be read; for a damaged file Pillow raises nearly anything.
    """
    image = source if isinstance(source, Image.Image) else _opened(source)
    # Of 16 bits a colour Pillow keeps 8, and says so in the tiles of a file that is not decoded.
    is_deep = ";16" in str(getattr(image, "tile", "")) or image.info.get("bit_depth", 8) > 8
    notes = [BROUGHT] if is_deep or image.mode[0] in "IF" else []
    # The second picture of an MPO is the camera's own, for its display.
    notes += [FIRST] if getattr(image, "is_animated", False) and image.format != "MPO" else []
    notes += [CUT_OFF] if max(image.size) > _LONG * min(image.size) else []
    if small and image is not source:
        image.draft("RGB", small)
    image.load()  # before it is turned: Pillow turns TIFF itself
    with contextlib.suppress(Exception):  # of damaged EXIF, whose pixels are whole
        if image.getexif().get(ExifTags.Base.Orientation, 1) != 1:
            image = ImageOps.exif_transpose(image)
    image = _in_8_bits(image)
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        image = Image.new("RGB", image.size, "white")
        image.paste(rgba.convert("RGB"), mask=rgba.getchannel("A"))
    return Decoded(image if image.mode == "RGB" else image.convert("RGB"), "; ".join(notes))


def as_extracted(source: bytes | Path) -> Image.Image:
    """A picture as the paper's sets are read, neither turned nor put on white.

    Raises:
        Exception: it is damaged.
    """
    return _in_8_bits(_opened(source)).convert("RGB")


def is_deep(read: Callable[[], bytes]) -> bool:
    """Whether a file has one channel with more than 8 bits."""
    try:
        return _opened(read()).mode[0] in "IF"
    except Exception:  # that it is damaged is said where it is read
        return False


def reader() -> str:
    """What decides whether a file can be read: an unreadable file is retried if it changes."""
    has_heif = find_spec("pillow_heif") is not None
    return f"Pillow {PIL.__version__}, heif {has_heif}, {Image.MAX_IMAGE_PIXELS} pixels"


def _opened(source: bytes | Path) -> Image.Image:
    """An opened image file, of which only the header was read.

    Raises:
        OSError: it is not a picture, with a reason where it is known, or it is too large.
    """
    data = source if isinstance(source, bytes) else source.read_bytes()
    what = "it is not a picture in a known format" if data else "it is empty"
    if data[4:8] == b"ftyp" and data[8:10] in _HEIF:
        if find_spec("pillow_heif"):
            from pillow_heif import register_heif_opener

            register_heif_opener()
        else:
            what = "it is a HEIC photo: pip install 'zsntta[heic]'"
    try:
        return Image.open(io.BytesIO(data))
    except Image.DecompressionBombError as error:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0) / 10**6
        raise OSError(
            f"it has more than {most:,.4g} megapixels: detect --max-megapixels allows more"
        ) from error
    except (UnidentifiedImageError, KeyError) as error:  # a KeyError of a damaged head
        beginning = data[:64].lstrip().lower()
        others = (other for start, other in _OTHERS.items() if beginning.startswith(start))
        raise OSError(next(others, what)) from error


def _in_8_bits(image: Image.Image) -> Image.Image:
    """The image with 8 bits a channel; one whose pixels are numbers (H, W) is made of them.

    Whole numbers from 0 to 65,535 have the range of the fewest usual bits that hold them (8, 10, 12
    or 16), floats from 0 to 1 that one. Other numbers have no range that is known: theirs is
    from the smallest to the largest. What is not finite is at its end, and what is no number black.

    Raises:
        OSError: it has no number that a pixel could be made of.
    """
    if image.mode[0] not in "IF":
        return image
    numbers: NDArray[Any] = np.asarray(image)
    values = numbers.astype(np.float64)
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise OSError("none of its pixels is a finite number")
    low, high = float(finite.min()), float(finite.max())
    if numbers.dtype.kind == "f" and low >= 0 and _BLACK <= high <= 1:
        low, high = 0.0, 1.0
    elif low >= 0 and high <= _LARGEST[-1] and bool((finite == np.floor(finite)).all()):
        low, high = 0.0, float(next(largest for largest in _LARGEST if high <= largest))
    values = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
    scaled = np.floor((values - low) / ((high - low) or 1) * 255 + 0.5)
    return Image.fromarray(scaled.astype(np.uint8))
