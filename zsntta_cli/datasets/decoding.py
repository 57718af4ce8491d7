"""Picture files to RGB: the one place that says how an image is read, and that knows pillow_heif.

What is judged is read as a viewer shows it (`as_shown`): turned as its EXIF says, transparent
pixels on white. The paper's sets are read as published (`as_extracted`): nothing turned,
transparency dropped. Either way images of more than 8 bits are brought to 8; Pillow's own
conversion makes all above 255 white. What Pillow cannot read is refused with its reason.
"""

import contextlib
import importlib.metadata
import io
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, PngImagePlugin, UnidentifiedImageError

READING = 6  # goes up when a file gives other pixels or notes
# The notes of an image of more than 8 bits, of several pictures, and of a long one.
BROUGHT = "brought to 8 bits"
FIRST = "only the first of its pictures is looked at"
CUT_OFF = "only the square in its middle is looked at"
_LONG = 2  # long sides in short ones, from which on the most is outside of that square
# The largest numbers of 8, 10, 12 and 16 bits: what cameras and scanners put into 16. A picture
# that looks black in 16 has 12 or fewer; one of 14 looks dark, and as it is meant if it is of 16.
_LARGEST = (255, 1023, 4095, 65_535)
_BLACK = 1 / 16  # of floats from 0 to 1: where all are less, these are not their range
# ISO/IEC 23008-12: brands of pictures coded by HEVC. Those coded by AV1 Pillow reads itself.
_HEIF = (
    b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1",
)  # fmt: skip
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
    """An RGB image, and what was done to read it where that is more than reading."""

    image: Image.Image
    note: str = ""


@contextlib.contextmanager
def limited_to(megapixels: float | None) -> Iterator[None]:
    """Refuse larger images, those of 179 megapixels without a number; Pillow warns of none.

    It holds for the process: the limit is Pillow's own, which refuses what is twice as large.
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
    """A picture as a viewer shows it; a JPEG is decoded no larger than it needs to be for `small`.

    Raises:
        Exception: it cannot be read; of a damaged file Pillow raises nearly anything.
    """
    image = source if isinstance(source, Image.Image) else _opened(source)
    is_of_16 = _is_of_16(image)
    is_deep_heif = image.info.get("bit_depth", 8) > 8
    notes = [BROUGHT] if is_of_16 or is_deep_heif or _is_of_numbers(image) else []
    # The second picture of an MPO is the camera's own, for its display.
    notes += [FIRST] if getattr(image, "is_animated", False) and image.format != "MPO" else []
    notes += [CUT_OFF] if max(image.size) > _LONG * min(image.size) else []
    if small and image is not source:
        image.draft("RGB", small)
    image.load()  # before it is turned: Pillow turns TIFF itself
    with contextlib.suppress(Exception):  # of damaged EXIF, whose pixels are whole
        if image.getexif().get(ExifTags.Base.Orientation, 1) != 1:
            image = ImageOps.exif_transpose(image)
    plain, clear = _in_8_bits(image, is_of_16), image.info.get("transparency")
    if _is_of_numbers(image) and isinstance(clear, int):  # of PNG: the grey that is not shown
        plain.paste(255, mask=Image.fromarray(np.asarray(image) == clear))
    elif plain.has_transparency_data:
        rgba = (plain.convert("LA") if plain.mode == "La" else plain).convert("RGBA")
        plain = Image.new("RGB", plain.size, "white")
        plain.paste(rgba.convert("RGB"), mask=rgba.getchannel("A"))
    return Decoded(plain if plain.mode == "RGB" else plain.convert("RGB"), "; ".join(notes))


def as_extracted(source: bytes | Path) -> Image.Image:
    """A whole picture as the paper's sets are read, neither turned nor laid on white.

    Raises:
        Exception: it is damaged.
    """
    image = _opened(source)
    return _in_8_bits(image, _is_of_16(image)).convert("RGB")


def is_deep(read: Callable[[], bytes]) -> bool:
    """Whether a file has one channel of more than 8 bits."""
    try:
        return _is_of_numbers(_opened(read()))
    except Exception:  # that it is damaged is said where it is read
        return False


def reader() -> str:
    """What decides whether a file can be read: one that could not is tried again by another."""
    versions = f"Pillow {PIL.__version__}, heif {_heif_version()}"
    return f"reading {READING}, {versions}, {Image.MAX_IMAGE_PIXELS} pixels"


@cache
def _heif_version() -> str:
    return importlib.metadata.version("pillow-heif") if find_spec("pillow_heif") else "none"


def _opened(source: bytes | Path) -> Image.Image:
    """A file whose head was read.

    Raises:
        OSError: it is no picture, in words that say what it is instead where that is known, or it
            is too large.
    """
    data = source if isinstance(source, bytes) else source.read_bytes()
    is_heic = data[4:8] == b"ftyp" and data[8:12] in _HEIF
    if is_heic and find_spec("pillow_heif"):
        from pillow_heif import register_heif_opener

        register_heif_opener()
    try:
        image = Image.open(io.BytesIO(data))
        image.info.setdefault("bit_depth", _bits(data) if image.format == "AVIF" else 8)
        return image
    except Image.DecompressionBombError as error:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0) / 10**6
        raise OSError(
            f"it has more than {most:,.4g} megapixels: --max-megapixels of detect allows more"
        ) from error
    except (UnidentifiedImageError, KeyError) as error:  # a KeyError of a damaged head
        what = "it is no picture of a known kind" if data else "it is empty"
        if is_heic and not find_spec("pillow_heif"):
            what = "it is a HEIC photo: pip install 'zsntta[heic]' reads them"
        beginning = data[:64].lstrip().lower()
        others = (other for start, other in _OTHERS.items() if beginning.startswith(start))
        raise OSError(next(others, what)) from error


def _is_of_numbers(image: Image.Image) -> bool:
    """Whether a pixel is one number of more than 8 bits."""
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


def _is_of_16(image: Image.Image) -> bool:
    """Whether a file, not decoded yet, has 16 bits a channel; Pillow keeps 8 of colours."""
    return any(";16" in str(tile) for tile in getattr(image, "tile", ()))


def _bits(data: bytes) -> int:
    """The bits a channel of an AVIF: ISO/IEC 23008-12's box `pixi`, 8 without one.

    Behind its name are its version (4 bytes), how many channels there are, and the bits of each.
    """
    _, name, rest = data[:4096].partition(b"pixi")
    return rest[5] if name and len(rest) > 5 else 8


def _in_8_bits(image: Image.Image, is_of_16: bool) -> Image.Image:
    """The image with 8 bits a channel.

    Raises:
        OSError: it has no number that a pixel could be made of.
    """
    if _is_of_numbers(image):
        return Image.fromarray(_scaled(np.asarray(image)))
    if is_of_16 and image.mode in ("RGB", "RGBA"):
        upper = np.array(image)
        if (most := upper[..., :3].max()) < 16:  # 10 or 12 bits, of which Pillow keeps 2 or 4
            upper[..., :3] *= 255 // (3 if most < 4 else 15)
            return Image.fromarray(upper)
    return image


def _scaled(numbers: NDArray[Any]) -> NDArray[np.uint8]:
    """Numbers (H, W) as pixels.

    Whole numbers from 0 to 65,535 have the range of the fewest usual bits that hold them (8, 10, 12
    or 16), floats from 0 to 1 that one. Other numbers have no range that is known: theirs is
    from the smallest to the largest. What is not finite is at its end, and what is no number black.
    """
    values = numbers.astype(np.float64)
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise OSError("not one of its pixels is a finite number")
    low, high = float(finite.min()), float(finite.max())
    if numbers.dtype.kind == "f" and low >= 0 and _BLACK <= high <= 1:
        low, high = 0.0, 1.0
    elif low >= 0 and high <= _LARGEST[-1] and bool((finite == np.floor(finite)).all()):
        low, high = 0.0, float(next(largest for largest in _LARGEST if high <= largest))
    values = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
    return np.floor((values - low) / ((high - low) or 1) * 255 + 0.5).astype(np.uint8)
