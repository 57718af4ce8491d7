"""Picture files to RGB: the only place that decides how an image is read or uses pillow_heif.

Judged images are read as a viewer shows them (`as_shown`): rotated as their EXIF data say, with
transparent pixels in white. The paper's sets are read as published (`as_extracted`): not rotated,
without transparency. Both scale more than 8 bits to 8; Pillow itself makes all above 255 white.
"""

import contextlib
import io
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import PIL
from PIL import ExifTags, Image, ImageOps, PngImagePlugin

READING = 8  # increases whenever a file gives other pixels or notes
# Notes on an image of more than 8 bits, on one of several pictures, and on a long one.
BROUGHT = "reduced to 8 bits"
FIRST = "only its first picture is judged"
CUT_OFF = "only its central square is judged"
_HEIF = (b"he", b"mi", b"ms")  # how brands of HEVC pictures begin, ISO/IEC 23008-12

# Texts of drawing programs and colour profiles in PNGs: Pillow stops at 1 MB, no viewer does.
PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY


@contextlib.contextmanager
def limited_to(megapixels: float | None) -> Iterator[None]:
    """Refuse larger images, by default above 179 megapixels; silence Pillow's warnings.

    It applies to the whole process: Pillow refuses images of twice its own limit.
    """
    pillows = Image.MAX_IMAGE_PIXELS
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        try:
            Image.MAX_IMAGE_PIXELS = int(megapixels * 10**6 / 2) if megapixels else pillows
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = pillows


def reader() -> str:
    """What decides whether a file can be read: an unreadable file is retried if it changes."""
    has_heif = find_spec("pillow_heif") is not None
    return f"Pillow {PIL.__version__}, heif {has_heif}, {Image.MAX_IMAGE_PIXELS} pixels"


def as_shown(
    source: bytes | Path | Image.Image, small: tuple[int, int] | None = None
) -> tuple[Image.Image, str]:
    """A picture as a viewer shows it, and a note if more was done than reading it.

    A JPEG is decoded no larger than `small` requires.

    Raises:
        Exception: it cannot be read; for a damaged file Pillow raises nearly anything.
    """
    image = source if isinstance(source, Image.Image) else opened(source)
    # Pillow keeps 8 of 16 bits a colour; before a file is decoded, its tiles say so.
    is_deep = ";16" in str(getattr(image, "tile", "")) or image.info.get("bit_depth", 8) > 8
    notes = [BROUGHT] if is_deep or image.mode[0] in "IF" else []
    # The second picture of an MPO is the camera's own, for its display.
    notes += [FIRST] if getattr(image, "is_animated", False) and image.format != "MPO" else []
    notes += [CUT_OFF] if max(image.size) > 2 * min(image.size) else []  # most of it is outside
    if small and image is not source:
        image.draft("RGB", small)
    image.load()  # first, because Pillow rotates TIFF itself
    with contextlib.suppress(Exception):  # damaged EXIF data of a sound picture
        if image.getexif().get(ExifTags.Base.Orientation, 1) != 1:
            image = ImageOps.exif_transpose(image)
    image = _in_8_bits(image)
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        image = Image.new("RGB", image.size, "white")
        image.paste(colours, mask=colours)
    return image if image.mode == "RGB" else image.convert("RGB"), "; ".join(notes)


def as_extracted(source: bytes | Path) -> Image.Image:
    """A picture as the paper's sets are read; it raises what `as_shown` does."""
    return _in_8_bits(opened(source)).convert("RGB")


def opened(source: bytes | Path) -> Image.Image:
    """An image file, of which only the header was read.

    Raises:
        OSError: it is not a picture, or it is too large.
    """
    data = source if isinstance(source, bytes) else source.read_bytes()
    reason = "it is not a picture in a known format"
    if data[:24].isascii() and b"\0" not in data[:24]:  # a web page, git-lfs's pointer
        reason += f": it begins {data[:24].decode()!r}"
    if data[4:8] == b"ftyp" and data[8:10] in _HEIF:
        if find_spec("pillow_heif"):
            from pillow_heif import register_heif_opener

            register_heif_opener()
        else:
            reason = "it is a HEIC photo: pip install 'zsntta[heic]'"
    try:
        return Image.open(io.BytesIO(data))
    except Image.DecompressionBombError as error:
        most = f"{(Image.MAX_IMAGE_PIXELS or 0) * 2e-6:,.4g} megapixels"
        raise OSError(f"it has more than {most}: detect --max-megapixels allows more") from error
    except (PIL.UnidentifiedImageError, KeyError) as error:  # KeyError: a damaged header
        raise OSError(reason if data else "it is empty") from error


def _in_8_bits(image: Image.Image) -> Image.Image:
    """The image with 8 bits a channel; larger numbers are scaled.

    The range of whole numbers is that of the smallest usual number of bits (8, 10, 12, 16), the
    range of floats in [0, 1] is [0, 1], and all others are stretched from their smallest to their
    largest. What is not a number is black.
    """
    if image.mode[0] not in "IF":
        return image
    values = np.asarray(image).astype(np.float64)  # (H, W)
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise OSError("none of its pixels is a finite number")
    low, high = finite.min(), finite.max()
    if image.mode == "F" and low >= 0 and 1 / 16 <= high <= 1:  # darker images have another range
        low, high = 0, 1
    elif low >= 0 and high < 2**16 and (finite == np.floor(finite)).all():
        low, high = 0, next(2**bits - 1 for bits in (8, 10, 12, 16) if high < 2**bits)
    values = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
    return Image.fromarray(((values - low) / ((high - low) or 1) * 255 + 0.5).astype(np.uint8))
