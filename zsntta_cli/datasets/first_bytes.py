"""What a file is, by its first bytes: a picture, or what else a file with a picture's name may be.

Names do not tell: a photo may be called `.jpe`, `.jpg_original` or nothing at all, and a `.jpg` may
be a web page that came in its place.
"""

import re

LOOKED_AT = 64  # bytes from a file's beginning that tell what it is
# ISO/IEC 23008-12: brands of pictures coded by HEVC. Those coded by AV1 Pillow reads itself.
HEIF = (
    b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1",
)  # fmt: skip
_AVIF = (b"avif", b"avis")
TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # cameras' RAW files begin like it, too
_JXL = (b"\xff\x0a", b"\0\0\0\x0cJXL \r\n\x87\n")
_BEGINNINGS = (
    b"\xff\xd8\xff",  # JPEG
    b"\x89PNG\r\n\x1a\n",
    b"GIF87a", b"GIF89a",
    *TIFF,
    b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51",  # JPEG 2000
    *_JXL,
)  # fmt: skip
_PAGE = ("<!doctype html", "<html", "<head", "<body", "<script")
# What other files begin with, and what a row calls them.
_OTHERS = {
    b"version https://git-lfs": "a git-lfs pointer: git lfs pull fetches the file itself",
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a ZIP archive",
    b"PK\x05\x06": "a ZIP archive",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"\x1f\x8b": "compressed by gzip",
    b"8BPS": "a PSD picture, which is not read: export it as PNG",
    b"\x1aE\xdf\xa3": "a video",
    b"RIFF": "a sound or a video",
    b"OggS": "a sound or a video",
    b"ID3": "a sound",
    b"\0\x05\x16\x07": "what macOS keeps beside a file, not the file itself",
    b"bplist00": "a placeholder of iCloud: download the file itself",
    b"SQLite format 3": "a database",
    b"\x89HDF": "an HDF5 file",
}


def is_picture(head: bytes) -> bool:
    """Whether a file that begins like this is a picture of a kind that may be read."""
    if head.startswith(_BEGINNINGS):
        return True
    if head[4:8] == b"ftyp":
        return head[8:12] in (*HEIF, *_AVIF)
    if head.startswith(b"RIFF"):
        return head[8:12] == b"WEBP"
    if head.startswith(b"BM"):
        return head[6:10] == bytes(4) and len(head) > 26
    # Netpbm has a letter, and numbers as text.
    return bool(re.match(rb"P[1-6fF]\s", head))


def first_bytes(path: str) -> bytes:
    """A file's first bytes; OSError where it cannot be read."""
    with open(path, "rb", buffering=0) as file:
        return file.read(LOOKED_AT)


def why_unread(data: bytes) -> str:
    """Why a file that no decoder knows is not read, by what it is; empty where that is unknown."""
    if not data:
        return "it is empty"
    if is_picture(data[:LOOKED_AT]):
        if data.startswith(_JXL):
            return "it is a JPEG XL picture, which is not read: convert it to PNG or JPEG"
        return "it is cut off or damaged in its head"
    if not any(data[:4096]) and not any(data):
        return "it has only zeros: its content was lost"
    for beginning, what in _OTHERS.items():
        if data.startswith(beginning):
            return f"it is {what}"
    if data[4:8] in (b"ftyp", b"moov", b"mdat"):
        return "it is a video"
    return _of_text(data)


def _of_text(data: bytes) -> str:
    try:
        text = data[:1024].decode("utf-8-sig", errors="strict").lstrip().lower()
    except UnicodeDecodeError as error:
        if error.start < 1020:  # a character that is cut in two at the end is one
            return ""
        text = data[: error.start].decode("utf-8-sig").lstrip().lower()
    if "\0" in text:
        return ""
    if text.startswith(_PAGE) or (text.startswith(("<?xml", "<!--")) and "<html" in text):
        return "it is a web page"
    if "<svg" in text:
        return "it is an SVG drawing, which is not read: export it as PNG"
    return "it is a text"
