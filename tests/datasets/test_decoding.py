"""Pictures of all modes, as a viewer shows them and as the paper's sets are read."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from zsntta_cli.datasets import decoding
from zsntta_cli.datasets.decoding import as_extracted, as_shown
from zsntta_cli.datasets.images import UNREADABLE

UPRIGHT = {  # what a viewer does with pixels (H, W, …), by the EXIF orientation
    1: lambda a: a, 2: lambda a: a[:, ::-1], 3: lambda a: a[::-1, ::-1], 4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1), 6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1), 8: np.rot90,
}  # fmt: skip


def file(image, form="PNG", orientation=None, **options):
    if orientation:
        options["exif"] = Image.Exif()
        options["exif"][274] = orientation
    content = io.BytesIO()
    image.save(content, form, **options)
    return content.getvalue()


def on_white(colours, alpha):
    """Colours (H, W, 3) and alpha (H, W) as they look on white paper."""
    share = alpha[..., None] / 255
    return np.floor(colours * share + 255 * (1 - share) + 0.5)


def png16(pixels):
    """A PNG (H, W, C) of 16 bits a channel, as Pillow writes none but of one channel."""
    high, wide, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", wide, high, 16, kind, 0, 0, 0))]
    chunks += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content
        + struct.pack(">I", zlib.crc32(name + content)) for name, content in chunks
    )  # fmt: skip


CHANNELS = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}


@pytest.mark.parametrize("mode", CHANNELS)
@pytest.mark.parametrize("orientation", [None, *UPRIGHT])
def test_pixels_are_turned_and_laid_on_white(mode, orientation):
    shape = (5, 6, CHANNELS[mode])
    pixels = np.random.default_rng(orientation or 0).integers(0, 256, shape, np.uint8)
    content = file(Image.fromarray(pixels.squeeze(), mode), orientation=orientation)
    has_alpha = mode.endswith("A")
    rgb = np.broadcast_to(pixels[..., : shape[2] - has_alpha], (5, 6, 3))
    seen = on_white(rgb, pixels[..., -1]) if has_alpha else rgb
    shown, note = as_shown(content)
    np.testing.assert_array_equal(np.asarray(shown), UPRIGHT[orientation or 1](seen))
    assert (shown.mode, decoding.BROUGHT in note) == ("RGB", False)
    np.testing.assert_array_equal(np.asarray(as_extracted(content)), rgb)
    np.testing.assert_array_equal(as_shown(Image.open(io.BytesIO(content)))[0], shown)


FLOATS = [
    ([0, 0.5, 1], [0, 128, 255]), ([0, 0.25, 0.25], [0, 64, 64]), ([0, 0.02, 0.04], [0, 128, 255]),
    ([0, 4095, 65535], [0, 16, 255]), ([-1, 0, 1], [0, 128, 255]), ([7.5, 7.5, 7.5], [0, 0, 0]),
    ([np.nan, 10.5, 20.5], [0, 0, 255]), ([np.inf, -2, 2], [255, 0, 255]),
]  # fmt: skip
WHOLE = [
    ([0, 100, 255], [0, 100, 255]), ([0, 512, 1023], [0, 128, 255]), ([-5, -5, -5], [0, 0, 0]),
    ([-100, 0, 155], [0, 100, 255]), ([0, 2**16, 2**17], [0, 128, 255]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "pixels", "dtype"),
    [(*row, dtype) for rows, dtype in ((FLOATS, np.float32), (WHOLE, np.int32)) for row in rows],
)
def test_numbers_have_their_usual_range_or_their_own(values, pixels, dtype):
    content = file(Image.fromarray(np.array([values], dtype)), "TIFF")
    shown, note = as_shown(content)
    assert np.asarray(shown)[0, :, 0].tolist() == pixels
    assert decoding.BROUGHT in note
    np.testing.assert_array_equal(as_extracted(content), shown)


@pytest.mark.parametrize("channels", CHANNELS.values())
@pytest.mark.parametrize("bits", [8, 10, 12, 16])
def test_16_bits_a_channel(channels, bits):
    ramp = np.linspace(0, 2**bits - 1, 24).astype(np.uint16).reshape(4, 6, 1)
    pixels = np.repeat(ramp, channels, axis=2)
    if channels in (2, 4):
        pixels[..., -1] = 65535  # opaque
    shown, note = as_shown(png16(pixels))
    assert decoding.BROUGHT in note
    # Of colours Pillow keeps the upper 8 bits alone.
    exact = ramp * 255.0 / (2**bits - 1) if channels == 1 else ramp // 256
    assert abs(np.asarray(shown) - exact).max() <= 0.5


def palette(colour):
    image = Image.new("P", (5, 5), 1)
    image.putpalette([0, 0, 0, *colour])
    return image


def turned():
    """White on the left of 16 x 8 pixels, which a viewer turns by a quarter."""
    pixels = np.zeros((8, 16), np.uint8)
    pixels[:, :8] = 255
    return file(Image.fromarray(pixels), "JPEG", 6, quality=100)


RED, ORANGE = [255, 0, 0], [200, 100, 50]
DARK = [[value] * 3 for value in (0, 0, 1, 1, 255)]
DEEP = Image.fromarray(np.array([[0, 100, 255, 256, 65535]] * 5, np.uint16))
HIGH = np.array([[[0x8040, 0x1000, 0xFFFF]] * 5], np.uint16)
EXTRACTED = {  # a file, and the first row that an encoder sees of it
    "grey16.png": (file(DEEP), DARK),
    "rgb16.png": (png16(HIGH), [[0x80, 0x10, 0xFF]] * 5),  # the high bytes
    "cmyk.jpg": (file(Image.new("CMYK", (5, 5), (0, 255, 255, 0)), "JPEG", quality=95), [RED] * 5),
    "palette.png": (file(palette(ORANGE)), [ORANGE] * 5),
    "palette-alpha.png": (file(palette(ORANGE), transparency=b"\xff\x00"), [ORANGE] * 5),
    "palette.gif": (file(palette(ORANGE), "GIF", transparency=1), [ORANGE] * 5),
    "alpha.webp": (
        file(Image.new("RGBA", (5, 5), (*ORANGE, 255)), "WEBP", lossless=True), [ORANGE] * 5
    ),
    "bits.png": (file(Image.new("1", (5, 5), 1)), [[255] * 3] * 5),
    "float.tif": (file(Image.new("F", (5, 5), 90.6), "TIFF"), [[0] * 3] * 5),  # of no range
    "turned.jpg": (turned(), [[255] * 3] * 8 + [[0] * 3] * 8),
    "animated.gif": (
        file(Image.new("RGB", (5, 5), "red"), "GIF", save_all=True,
             append_images=[Image.new("RGB", (5, 5), "blue")]), [RED] * 5
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize("kind", EXTRACTED)
def test_what_an_encoder_sees_of_each_kind(kind):
    content, expected = EXTRACTED[kind]
    image = as_extracted(content)
    assert image.mode == "RGB"
    np.testing.assert_allclose(np.asarray(image)[0], expected, atol=1 if ".jpg" in kind else 0)


PICTURE = Image.fromarray(np.random.default_rng(1).integers(0, 256, (9, 12, 3), np.uint8)).resize(
    (240, 160), Image.Resampling.BICUBIC
)
FORMS = ["JPEG", "PNG", "BMP", "TIFF", "GIF", "PPM", "WEBP", "AVIF", "JPEG2000"]


@pytest.mark.parametrize("form", FORMS)
def test_files_that_are_cut_off_are_refused(form):
    content = file(PICTURE, form)
    for read in (as_shown, as_extracted):
        for length in range(0, len(content) - 40, len(content) // 20):
            with pytest.raises(UNREADABLE):
                read(content[:length])


def test_a_long_text_or_a_large_profile_is_no_damage():
    """Drawing programs keep their prompts and graphs in a PNG: Pillow alone stops at 1 MB."""
    info = PngImagePlugin.PngInfo()
    info.add_text("workflow", "x" * 2_000_000, zip=True)
    for kept in ({"pnginfo": info}, {"icc_profile": bytes(2_000_000)}):
        file = io.BytesIO()
        Image.new("RGB", (4, 4), "red").save(file, "png", **kept)
        assert as_shown(file.getvalue())[0].getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"", "empty"), (b"version https://git-lfs.github.com/spec/v1\n", "version https://git"),
     (b"<html>404</html>", "<html>404")],
)  # fmt: skip
def test_what_is_no_picture_says_what_it_is(content, word):
    for read in (as_shown, as_extracted):
        with pytest.raises(OSError, match=word):
            read(content)


@pytest.mark.parametrize(("bits", "note"), [(8, ""), (10, decoding.BROUGHT)])
def test_heic_photos_are_upright_and_those_of_more_bits_noted(bits, note):
    pillow_heif = pytest.importorskip("pillow_heif")
    content, exif = io.BytesIO(), Image.Exif()
    exif[274] = 6
    pixels = (np.asarray(PICTURE).astype(np.uint16) * 257).tobytes()
    picture = pillow_heif.from_bytes("RGB;16", PICTURE.size, pixels)
    picture = picture if bits > 8 else pillow_heif.from_pillow(PICTURE)
    picture.save(content, quality=95, exif=exif.tobytes())
    image, said = as_shown(content.getvalue())
    assert said == note
    turned = UPRIGHT[6](np.asarray(PICTURE).astype(int))
    upright = turned if image.size == PICTURE.size[::-1] else np.asarray(PICTURE)
    assert abs(np.asarray(image).astype(int) - upright).mean() < 8


def test_without_pillow_heif_a_heic_photo_says_what_reads_it(monkeypatch):
    monkeypatch.setattr("zsntta_cli.datasets.decoding.find_spec", lambda _: None)
    monkeypatch.setattr(Image, "OPEN", {})
    with pytest.raises(OSError, match=r"zsntta\[heic\]"):
        as_shown(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")


def test_large_images_are_noted_or_refused(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10**6)
    content = file(Image.new("1", (1_000, 1_100)))
    with decoding.limited_to(None):
        assert as_shown(content, small=(8, 8))[0].size == (1_000, 1_100)
        known = decoding.reader()
    with decoding.limited_to(1.5):
        assert as_shown(content)[1] == ""
        assert decoding.reader() != known
    with decoding.limited_to(0.5), pytest.raises(OSError, match="--max-megapixels"):
        as_shown(content)
    assert Image.MAX_IMAGE_PIXELS == 10**6


def test_what_is_not_looked_at_is_noted():
    plain, other = (Image.new("RGB", (40, 20), colour) for colour in ("red", "blue"))
    assert as_shown(file(plain))[1] == ""
    assert as_shown(file(plain.resize((41, 20))))[1] == decoding.CUT_OFF
    assert as_shown(file(plain.resize((20, 41)), "JPEG"))[1] == decoding.CUT_OFF
    for form in ("GIF", "TIFF", "PNG"):
        assert (
            as_shown(file(plain, form, save_all=True, append_images=[other]))[1] == decoding.FIRST
        )
    assert as_shown(file(plain, "MPO", save_all=True, append_images=[other]))[1] == ""
