"""The relative address under which a page finds the file of an image on the same disk."""

import os
from pathlib import Path, PurePath
from urllib.parse import quote

from zsntta_cli.detection.sources.item import Item

# What browsers draw. HEIC, TIFF, JPEG 2000 and JPEG XL are not among it.
_DRAWN = {".jpg", ".jpeg", ".jfif", ".png", ".apng", ".gif", ".webp", ".bmp", ".avif"}


def address(item: Item, folder: Path) -> str | None:
    """The relative address of an item's own file from the folder of a page, or None.

    Frames, members of archives and cached features have no file of their own; other files are of a
    type that no browser draws, or are on another drive. Names of any bytes are percent-encoded, and
    the address begins with a dot or two, so that no name is taken for a scheme or a host.
    """
    if item.file is None or item.member or item.frame is not None:
        return None
    if item.file.suffix.lower() not in _DRAWN:
        return None
    try:
        steps = PurePath(os.path.relpath(item.file, folder)).as_posix()
    except ValueError:  # another drive
        return None
    if "\\" in steps:  # browsers take it for a slash, however it is spelled
        return None
    return quote(os.fsencode(steps if steps.startswith("../") else f"./{steps}"))
