"""Pictures of a page: small ones within it, as data URIs, and the addresses of files beside it."""

import base64
import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import NamedTuple
from urllib.parse import quote

from PIL import Image, features

from zsntta_cli.datasets.decoding import as_shown
from zsntta_cli.detection.sources import Photo

SIDE = 256  # pixels, the longer side
_FORMAT = "WEBP" if features.check("webp") else "JPEG"
_QUALITY = 72
# What browsers draw. HEIC, TIFF, JPEG 2000 and JPEG XL are not among it.
_DRAWN = {".jpg", ".jpeg", ".jfif", ".png", ".apng", ".gif", ".webp", ".bmp", ".avif"}


class Picture(NamedTuple):
    """A small picture, and its width and height in pixels."""

    uri: str
    width: int
    height: int


def pictures(photos: Sequence[Photo]) -> list[Picture | None]:
    """Small pictures of images, in order; None for one that cannot be read (any more)."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(_picture, photos))


def _picture(photo: Photo) -> Picture | None:
    try:
        # A JPEG is decoded no larger than necessary.
        return small(as_shown(photo.read(), small=(2 * SIDE, 2 * SIDE))[0])
    except Exception:  # of a damaged file PIL raises nearly anything; the page is still of use
        return None


def small(image: Image.Image) -> Picture:
    """An RGB image, as the encoder saw it, shrunk to fit into SIDE x SIDE pixels."""
    image = image.copy()
    image.thumbnail((SIDE, SIDE))
    content = io.BytesIO()
    image.save(content, _FORMAT, quality=_QUALITY)
    coded = base64.b64encode(content.getvalue()).decode()
    return Picture(f"data:image/{_FORMAT.lower()};base64,{coded}", *image.size)


def address(photo: Photo, folder: Path) -> str | None:
    """The relative address of an image's own file from the folder of a page, or None.

    Members of archives and cached features have no file of their own; other files are of a type
    that no browser draws. Names of any bytes are percent-encoded, and the address begins with a dot
    or two, so that no name is taken for a scheme or a host.
    """
    if photo.file is None or photo.member or photo.file.suffix.lower() not in _DRAWN:
        return None
    steps = PurePath(os.path.relpath(photo.file, folder)).as_posix()
    if "\\" in steps:  # browsers take it for a slash, however it is spelled
        return None
    return quote(os.fsencode(steps if steps.startswith("../") else f"./{steps}"))
