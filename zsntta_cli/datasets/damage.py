"""Damage within a picture's file, which Pillow does not speak of: the one module with simplejpeg.

libjpeg goes on after bytes that it cannot read, and warns: Pillow drops its warnings, and gives
grey rows. simplejpeg raises them. A PNG has a checksum in each of its parts, and Pillow looks at
those of its head alone. libtiff writes its errors to standard error, of faxes too, and Pillow does
not hear of them. What BMP, PPM, WebP, AVIF and JPEG 2000 hold has no checksum, so damage in these
is seen only where the decoder fails.
"""

import contextlib
import ctypes
import struct
import threading
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from PIL import Image, _imaging

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_TEXTS = (b"tEXt", b"zTXt", b"iTXt", b"iCCP")  # words and profiles: no pixel comes of them
_MOST_TEXT, _MOST_TEXTS = 2**20, 2**25  # bytes of one, and of all: Pillow refuses more
# libjpeg's warnings that tell of damage. Others do not: phones write scans with "Invalid SOS
# parameters", and programs an "unknown JFIF revision number", and all pixels are there.
_CORRUPT, _PREMATURE = "Corrupt JPEG data: ", "Premature end of JPEG file"
_PROGRESSION = "Inconsistent progression sequence"
ENDS = "it ends too early"
_SCALE = 8  # of a JPEG that is decoded for its warnings alone: an eighth of its sides
_DEFLATE_IN_TIFF = (8, 32946)
_JPEG_IN_TIFF, _COMPRESSION, _TABLES = 7, 259, 347  # a TIFF's tags and a value of the first
_LONGEST = 200  # bytes of an error
_PIECES = ((324, 325), (273, 279))  # tags of offsets and sizes: of tiles, of strips


def damage_in(data: bytes, image: Image.Image) -> str:
    """What is wrong within a picture's file, in its decoder's words; empty where nothing is known.

    `image` is the file as Pillow opened it; nothing of it is decoded here.
    """
    if image.format in ("JPEG", "MPO"):
        return _damage_in_jpeg(data)
    if image.format == "PNG":
        return _damage_in_png(data)
    if image.format == "TIFF":
        return _damage_in_tiff(data, getattr(image, "tag_v2", {}))
    return ""


def _damage_in_jpeg(data: bytes) -> str:
    """What libjpeg warns of; what simplejpeg cannot read (12 bits a channel) is Pillow's to say."""
    import simplejpeg

    try:
        try:
            _, _, colours, _ = simplejpeg.decode_jpeg_header(data, strict=False)
        except KeyError:  # its head is damaged, so that it names no colours that exist
            return "its head is wrong"
        is_print = colours in ("CMYK", "YCCK")
        simplejpeg.decode_jpeg(
            data, "CMYK" if is_print else "GRAY", fastdct=True, fastupsample=True,
            min_height=1, min_width=1, min_factor=_SCALE,
        )  # fmt: skip
    except ValueError as error:
        warning = str(error)
        if warning.startswith(_CORRUPT):
            return warning.removeprefix(_CORRUPT)
        if warning.startswith(_PROGRESSION):
            return "its scans do not follow each other"
        return ENDS if warning.startswith(_PREMATURE) else ""
    return ""


class _Chunk(NamedTuple):
    """A part of a PNG: its kind, and where in the file it begins and ends, checksum and all."""

    kind: bytes
    start: int
    end: int


def _chunks(data: bytes) -> Iterator[_Chunk]:
    """The parts of a PNG that are whole, up to its end mark."""
    start = len(_PNG)
    while start + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 12 + length
        if end > len(data):
            return
        yield _Chunk(kind, start, end)
        if kind == b"IEND":
            return
        start = end


def _damage_in_png(data: bytes) -> str:
    view, kind = memoryview(data), b""
    for kind, start, end in _chunks(data):
        if zlib.crc32(view[start + 4 : end - 4]) != int.from_bytes(view[end - 4 : end]):
            return f"the checksum of {kind.decode('latin-1')} is wrong"
    return "" if kind == b"IEND" else ENDS


def without_large_texts(data: bytes) -> bytes:
    """A PNG without words and colour profiles of more than a megabyte; other files as they are.

    Pillow refuses a file with these, which viewers show. Its limits are of the whole process, and
    there for the memory that such texts take: where they are left out, they take none.
    """
    if not data.startswith(_PNG):
        return data
    chunks = [*_chunks(data)]
    kept_size, large = 0, set[int]()
    for kind, start, end in chunks:
        if kind in _PNG_TEXTS:
            size = _unpacked_size(kind, data[start + 8 : end - 4])
            if size > _MOST_TEXT or kept_size + size > _MOST_TEXTS:
                large.add(start)
            else:
                kept_size += size
    if not large:
        return data
    kept = (data[start:end] for _, start, end in chunks if start not in large)
    return b"".join([_PNG, *kept, data[chunks[-1].end :]])  # a file that is cut off has more


def _unpacked_size(kind: bytes, content: bytes) -> int:
    """Bytes of a part's text, unpacked as far as the bound and one byte more."""
    _, _, rest = content.partition(b"\0")  # behind its keyword
    is_packed = kind != b"tEXt"
    if kind == b"iTXt":
        is_packed, rest = rest[:1] == b"\1", rest[2:]
        rest = rest.split(b"\0", 2)[-1]  # behind two names
    elif is_packed:
        rest = rest[1:]
    if not is_packed:
        return len(content)
    try:
        return len(zlib.decompressobj().decompress(rest, _MOST_TEXT + 1))
    except zlib.error:
        return len(content)


def _damage_in_tiff(data: bytes, tags: Any) -> str:
    """What libjpeg warns of in a TIFF's strips or tiles, and deflate's checksums that are wrong.

    Pillow tells libtiff's own errors, and libtiff leaves checksums out.
    """
    kind = tags.get(_COMPRESSION)
    if kind != _JPEG_IN_TIFF and kind not in _DEFLATE_IN_TIFF:
        return ""
    tables = bytes(tags.get(_TABLES, b""))[:-2]  # without their own end mark
    for offsets, sizes in _PIECES:
        pieces = zip(tags.get(offsets, ()), tags.get(sizes, ()), strict=False)
        for offset, size in pieces:
            piece = data[offset : offset + size]
            is_jpeg, whole = kind == _JPEG_IN_TIFF, tables + piece[2:] if tables else piece
            if wrong := _damage_in_jpeg(whole) if is_jpeg else _damage_in_deflated(piece):
                return wrong
    return ""


def _damage_in_deflated(piece: bytes) -> str:
    stream = zlib.decompressobj()
    try:
        while piece and not stream.eof:
            stream.decompress(piece, _MOST_TEXT)  # a part at a time: it may be large
            piece = stream.unconsumed_tail
    except zlib.error:
        return "the checksum of a strip is wrong"
    return "" if stream.eof else ENDS


_heard = threading.local()  # errors of libtiff in this thread


@contextlib.contextmanager
def errors_of_libtiff() -> Iterator[list[str]]:
    """The errors that libtiff tells of what is decoded within, in its words."""
    _hear_libtiff()
    _heard.errors = errors = list[str]()
    try:
        yield errors
    finally:
        _heard.errors = []


@cache
def _hear_libtiff() -> Any:
    """Have libtiff, which comes with Pillow, give its errors to this module; it is kept for ever.

    Its warnings are of unknown tags, and Pillow turns them off.
    """
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)
    formatted = ctypes.CDLL(None).vsnprintf

    def hear(_: bytes, form: bytes, values: int) -> None:
        text = ctypes.create_string_buffer(_LONGEST)
        formatted(text, _LONGEST, ctypes.c_char_p(form), ctypes.c_void_p(values))
        getattr(_heard, "errors", []).append(text.value.decode("latin-1").lower())

    handler = kind(hear)
    with contextlib.suppress(AttributeError, OSError):  # a Pillow that was built without it
        ctypes.CDLL(_imaging.__file__).TIFFSetErrorHandler(handler)
    return handler
