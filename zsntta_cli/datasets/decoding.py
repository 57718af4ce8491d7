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
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.ImageFile import ImageFile

from zsntta_cli.settings import LARGE_MEGAPIXELS, MOST_MEGAPIXELS

READING = 4  # goes up when a file gives other pixels or notes
# What a note's parts begin with.
BROUGHT, LARGE = "brought to 8 bits", "large"
_MILLION = 10**6
# Bits that cameras and scanners put into 16. A picture that looks black in 16 has 12 or fewer; one
# of 14 looks dark, and as it is meant if it is a dark one of 16.
_DEPTHS = (8, 10, 12, 16)
_BLACK = 1 / 16  # likewise of floats from 0 to 1: where all are less, these are not their range
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

_ORIENTATION = 274  # EXIF's tag

_most: float | None = None  # megapixels, in a run that has its own limit in place of Pillow's
_asked = False  # whether a person named it

Source = bytes | Path | Image.Image


class Decoded(NamedTuple):
    """An RGB image, and what was done to read it where that is more than reading."""

    image: Image.Image
    note: str = ""  # parts, with "; " between


def kinds_of(note: str) -> list[str]:
    """What was done to read an image, by the words that the parts of its note begin with."""
    parts = note.split("; ")
    return [kind for kind in (BROUGHT, LARGE) if any(p.startswith(kind) for p in parts)]


@contextlib.contextmanager
def limited_to(megapixels: float | None) -> Iterator[None]:
    """Refuse larger images, of Pillow's limit without one; what Pillow warns of is a note instead.

    It holds for the process: limits and warnings are Pillow's and Python's global ones.
    """
    global _most, _asked
    before, pillows = (_most, _asked), Image.MAX_IMAGE_PIXELS
    _most, _asked = megapixels or MOST_MEGAPIXELS, megapixels is not None
    Image.MAX_IMAGE_PIXELS = None
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"PIL\.")
            yield
    finally:
        (_most, _asked), Image.MAX_IMAGE_PIXELS = before, pillows


def as_shown(source: Source, small: tuple[int, int] | None = None) -> Decoded:
    """A picture as a viewer shows it; a JPEG is decoded no larger than it needs to be for `small`.

    Raises:
        Exception: it cannot be read; of a damaged file Pillow raises nearly anything.
    """
    if isinstance(source, Image.Image):
        return _shown(source, _is_of_16(source))
    with _opened(source) as image:
        megapixels, is_of_16 = image.width * image.height / _MILLION, _is_of_16(image)
        is_told = _most is not None and not _asked and megapixels > LARGE_MEGAPIXELS
        if small:
            image.draft("RGB", small)
        note = f"{LARGE}: {megapixels:,.4g} megapixels" if is_told else ""
        return _shown(image, is_of_16, note)


def as_extracted(source: bytes | Path, shown: bool = False) -> Image.Image:
    """A whole picture as the paper's sets are read, neither turned nor laid on white, or `shown`.

    Raises:
        Exception: it is damaged.
    """
    with _readable(source) as image:
        is_of_16 = _is_of_16(image)
        if shown:
            return _shown(image, is_of_16).image
        return _to_8_bits(image, is_of_16)[0].convert("RGB")


def is_deep(source: bytes | Path) -> bool:
    """Whether a file has one channel of more than 8 bits."""
    try:
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
            return _is_of_numbers(image)
    except Exception:  # that it is damaged is said where it is read
        return False


def reader() -> str:
    """What decides whether a file can be read: one that could not is tried again by another."""
    return (
        f"reading {READING}, Pillow {PIL.__version__}, heif {_heif_version()}, {_most} megapixels"
    )


@cache
def _heif_version() -> str:
    return importlib.metadata.version("pillow-heif") if find_spec("pillow_heif") else "none"


def _readable(source: bytes | Path) -> ImageFile:
    """A file as Pillow opens it.

    Raises:
        OSError: it is no picture, in words that say what it is instead where that is known.
    """
    data = source if isinstance(source, bytes) else source.read_bytes()
    if data[4:8] == b"ftyp" and data[8:12] in _HEIF and find_spec("pillow_heif"):
        from pillow_heif import register_heif_opener

        register_heif_opener()
    try:
        return Image.open(io.BytesIO(data))
    except (UnidentifiedImageError, KeyError) as error:  # a KeyError of a damaged head
        beginning = data[:64].lstrip().lower()
        what = next((what for start, what in _OTHERS.items() if beginning.startswith(start)), "")
        if data[4:8] == b"ftyp" and data[8:12] in _HEIF and not find_spec("pillow_heif"):
            what = "it is a HEIC photo: pip install 'zsntta[heic]' reads them"
        empty = "it is no picture of a known kind" if data else "it is empty"
        raise OSError(what or empty) from error


def _opened(source: bytes | Path) -> ImageFile:
    """A file whose head was read: OSError where it is no image, or too large."""
    image = _readable(source)
    if _most is not None and image.width * image.height > _most * _MILLION:
        size = f"{image.width * image.height / _MILLION:,.4g} megapixels"
        raise OSError(f"it has {size}, more than {_most:,g}: --max-megapixels allows more")
    return image


def _shown(image: Image.Image, is_of_16: bool, note: str = "") -> Decoded:
    """A picture turned as its EXIF says, in 8 bits, its transparent pixels on white."""
    image.load()  # first: Pillow turns TIFF itself
    try:
        is_turned = image.getexif().get(_ORIENTATION, 1) != 1
        turned = ImageOps.exif_transpose(image) if is_turned else image
    except Exception:  # of damaged EXIF Pillow raises nearly anything, and the pixels are whole
        turned = image
    plain, how = _to_8_bits(turned, is_of_16)
    clear = turned.info.get("transparency")
    if _is_of_numbers(turned) and isinstance(clear, int):  # of PNG: the grey that is not shown
        plain.paste(255, mask=Image.fromarray(np.asarray(turned) == clear))
    elif plain.has_transparency_data:
        rgba = (plain.convert("LA") if plain.mode == "La" else plain).convert("RGBA")
        plain = Image.new("RGB", plain.size, "white")
        plain.paste(rgba.convert("RGB"), mask=rgba.getchannel("A"))
    image = plain if plain.mode == "RGB" else plain.convert("RGB")
    return Decoded(image, "; ".join(filter(None, [note, how])))


def _is_of_numbers(image: Image.Image) -> bool:
    """Whether a pixel is one number of more than 8 bits."""
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


def _is_of_16(image: Image.Image) -> bool:
    """Whether a file, not decoded yet, has 16 bits a channel; Pillow keeps 8 of colours."""
    return any(";16" in str(tile) for tile in getattr(image, "tile", ()))


def _to_8_bits(image: Image.Image, is_of_16: bool) -> tuple[Image.Image, str]:
    """The image with 8 bits a channel, and how it was brought to them.

    Raises:
        OSError: it has no number that a pixel could be made of.
    """
    if _is_of_numbers(image):
        pixels, how = _scaled(np.asarray(image))
        return Image.fromarray(pixels), f"{BROUGHT} from {how}"
    if not is_of_16 or image.mode not in ("RGB", "RGBA"):
        return image, f"{BROUGHT} from 16" if is_of_16 else ""
    upper = np.array(image)
    bits = _depth(int(upper[..., :3].max()) * 256 + 255)
    if bits < 16:
        upper[..., :3] = _pixels(upper[..., :3], 0, max(2 ** (bits - 8) - 1, 1))
        image = Image.fromarray(upper)
    return image, f"{BROUGHT} from {bits}"


def _scaled(numbers: NDArray[Any]) -> tuple[NDArray[np.uint8], str]:
    """Numbers (H, W) as pixels, and what they were brought to 8 bits from.

    Whole numbers from 0 to 65,535 have the range of the fewest usual bits that hold them (8, 10, 12
    or 16), floats from 0 to 1 that one. Other numbers have no range that is known: theirs is
    from the smallest to the largest. What is not finite is at its end, and what is no number black.
    """
    values = numbers.astype(np.float64)
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise OSError("not one of its pixels is a finite number")
    low, high = float(finite.min()), float(finite.max())
    bits = _depth(int(high)) if low >= 0 and high <= 65_535 else 0
    if numbers.dtype.kind == "f" and low >= 0 and _BLACK <= high <= 1:
        first, last, how = 0.0, 1.0, "values 0 to 1"
    elif bits and bool((finite == np.floor(finite)).all()):
        first, last = 0.0, 2.0**bits - 1
        how = str(bits) if bits > 8 else "values 0 to 255"
    else:
        first, last, how = low, high, f"values {low:,.4g} to {high:,.4g}"
    return _pixels(np.nan_to_num(values, nan=first, posinf=high, neginf=low), first, last), how


def _pixels(values: NDArray[Any], first: float, last: float) -> NDArray[np.uint8]:
    """Numbers from `first` to `last` as pixels from 0 to 255."""
    shares = (values - first) / ((last - first) or 1)
    return np.floor(shares * 255 + 0.5).astype(np.uint8)


def _depth(largest: int) -> int:
    return next(bits for bits in _DEPTHS if largest < 2**bits)
