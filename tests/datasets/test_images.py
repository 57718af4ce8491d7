"""Kinds of images, as real files, and what becomes of each; broken ones and busy disks too."""

import resource
import struct
import threading
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from made import Notes, pack
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.datasets.images import limited
from zsntta_cli.errors import StoreError
from zsntta_cli.extraction.extractor import Extractor
from zsntta_cli.settings import EncoderChoice, ExtractSettings

RED, ORANGE = [255, 0, 0], [200, 100, 50]
EXTRACT = ("extract", "--model", "tiny", "--noise", "none", "--dataset")


def grey16(path):
    """0, 100, 255, 256, 65535 in a row of each."""
    Image.fromarray(np.array([[0, 100, 255, 256, 65535]] * 5, np.uint16)).save(path)


def rgb16(path):
    """By hand, as PIL writes none: 0x8040, 0x1000, 0xFFFF in every pixel."""
    row = b"\0" + struct.pack(">HHH", 0x8040, 0x1000, 0xFFFF) * 5
    chunks = {b"IHDR": struct.pack(">IIBBBBB", 5, 5, 16, 2, 0, 0, 0),
              b"IDAT": zlib.compress(row * 5), b"IEND": b""}  # fmt: skip
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content
        + struct.pack(">I", zlib.crc32(kind + content)) for kind, content in chunks.items()
    ))  # fmt: skip


def plain(mode, colour, **options):
    return lambda path: Image.new(mode, (5, 5), colour).save(path, **options)


def palette(**options):
    def save(path):
        image = Image.new("P", (5, 5), 1)
        image.putpalette([0, 0, 0, *ORANGE])
        image.save(path, **options)

    return save


def rotated(path):
    """White on the left of 16 x 8 pixels; EXIF says to turn it by a quarter."""
    pixels = np.zeros((8, 16), np.uint8)
    pixels[:, :8] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save(path, exif=exif, quality=100)


def animated(path):
    frames = [Image.new("RGB", (5, 5), colour) for colour in ("red", "blue", "lime")]
    frames[0].save(path, save_all=True, append_images=frames[1:], lossless=True)


def row_of(*values):
    return [[value] * 3 for value in values]


KINDS = {  # file name: what writes it, the first row that the encoder's side sees
    "grey16.png": (grey16, row_of(0, 0, 1, 1, 255)),  # PIL makes all above 255 white
    "grey16.tif": (grey16, row_of(0, 0, 1, 1, 255)),
    "rgb16.png": (rgb16, [[0x80, 0x10, 0xFF]] * 5),  # the high bytes
    "cmyk.jpg": (plain("CMYK", (0, 255, 255, 0), quality=95), [RED] * 5),
    "palette.png": (palette(), [ORANGE] * 5),
    "palette-transparent.png": (palette(transparency=1), [ORANGE] * 5),
    "palette-alpha.png": (palette(transparency=b"\xff\x00"), [ORANGE] * 5),
    "palette.gif": (palette(transparency=1), [ORANGE] * 5),
    "grey.png": (plain("L", 90), row_of(*[90] * 5)),
    "grey-alpha.png": (plain("LA", (90, 0)), row_of(*[90] * 5)),
    "alpha.png": (plain("RGBA", (*ORANGE, 0)), [ORANGE] * 5),
    "alpha.webp": (plain("RGBA", (*ORANGE, 255), lossless=True), [ORANGE] * 5),
    "bits.png": (plain("1", 1), row_of(*[255] * 5)),
    "float.tif": (plain("F", 90.6), row_of(*[0] * 5)),  # one value alone, of no range
    "rotated.jpg": (rotated, row_of(*[255] * 8, *[0] * 8)),
    "animated.gif": (animated, [RED] * 5),
    "animated.webp": (animated, [RED] * 5),
}


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize("place", ["folder", ".tar"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_becomes_of_each_kind(tmp_path, kind, place):
    save, expected = KINDS[kind]
    (tmp_path / "all").mkdir()
    save(tmp_path / "all" / kind)
    if place != "folder":
        pack(tmp_path / "all.tar", {kind: (tmp_path / "all" / kind).read_bytes()})
    where = tmp_path / ("all" if place == "folder" else "all.tar")
    image = datasets.load_images(f"all={where}", Path()).read(0)
    assert image.mode == "RGB"
    np.testing.assert_allclose(np.asarray(image)[0], expected, atol=1 if ".jpg" in kind else 0)


def test_all_kinds_at_once_on_the_command_line(zsntta):
    """Features are those of the pictures that the table above promises, saved as plain RGB."""
    for kind, (save, expected) in KINDS.items():
        for folder in ("kinds", "plain"):
            Path(folder).mkdir(exist_ok=True)
        save(Path("kinds", kind))
        height = 8 if kind == "rotated.jpg" else 5
        pixels = np.array([expected] * height, np.uint8)
        Image.fromarray(pixels).save(Path("plain", f"{Path(kind).name}.png"))
    features = []
    with warnings.catch_warnings(record=True):
        for folder in ("kinds", "plain"):
            result = zsntta(*EXTRACT, f"{folder}={folder}")
            assert result.exit_code == 0, result.output
            features.append(hdf5.read_features(Path(f"features/tiny/{folder}.h5")))
    one, other = (f.image_features.astype(np.float32) for f in features)
    cosine = (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert cosine.min() > 0.999


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "gif", "tif"])
def test_an_image_cut_in_the_middle_is_one_line(zsntta, suffix):
    pixels = np.random.default_rng(0).integers(0, 256, (60, 60, 3), np.uint8)
    Path("set").mkdir()
    for name in ("a", "b"):
        Image.fromarray(pixels).save(f"set/{name}.{suffix}")
    whole = Path(f"set/b.{suffix}").read_bytes()
    Path(f"set/b.{suffix}").write_bytes(whole[: len(whole) // 2])
    result = zsntta(*EXTRACT, "x=set")
    assert result.exit_code == 1
    assert f"error: cannot read image 'b.{suffix}' of 'x' (" in result.stderr
    assert result.stderr.count("error") == 1
    assert "Traceback" not in result.stderr
    result = zsntta(*EXTRACT, "x=set", "--skip-broken")
    assert "1 image in" in result.stdout
    assert f"1 broken left out: b.{suffix}" in result.stdout


def test_a_cut_off_tar_gz_is_one_line(zsntta, picture_folder):
    files = {p.name: p.read_bytes() for p in picture_folder.rglob("*.*")}
    path = pack(Path("a.tar.gz"), files)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    result = zsntta(*EXTRACT, "x=a.tar.gz")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: data set 'x': a.tar.gz is no whole .tar.gz archive (")


@pytest.mark.parametrize("change", ["another picture", "one more", "one fewer", "another class"])
def test_a_set_that_changes_between_two_runs(zsntta, picture_folder, change):
    command = (*EXTRACT, f"pets={picture_folder}")
    assert zsntta(*command).exit_code == 0
    path = Path("features/tiny/pets.h5")
    before, victim = path.read_bytes(), picture_folder / "dog" / "0.jpg"
    if change == "another picture":
        Image.new("RGB", (9, 9)).save(victim)
    elif change == "one more":
        Image.new("RGB", (9, 9)).save(picture_folder / "dog" / "new.png")
    elif change == "one fewer":
        victim.unlink()
    else:
        victim.rename(picture_folder / "big_cat" / "0.jpg")
    result = zsntta(*command)
    assert result.exit_code == 1
    line = result.stderr.splitlines()[-1]  # behind a note on its classes
    assert line.startswith("error: features/tiny/pets.h5 was made from other images: ")
    assert path.read_bytes() == before
    result = zsntta(*command, "--overwrite")
    assert "images in" in result.stdout
    assert path.read_bytes() != before


class Encoder:
    """The embedded encoder, which counts its images and may be made to wait."""

    def __init__(self, tiny, started=None, wait=None):
        self._tiny, self._started, self._wait, self.images = tiny, started, wait, 0

    def __getattr__(self, name):
        return getattr(self._tiny, name)

    def encode_pixels(self, pixels):
        if self._wait:
            self._started.set()
            assert self._wait.wait(30)
        self.images += len(pixels)
        return self._tiny.encode_pixels(pixels)


def extractor(root, encoder, reporter):
    settings = ExtractSettings(batch_size=8, workers=2)
    return Extractor(EncoderChoice("tiny"), lambda: encoder, root, settings, reporter)


def glyphs(count):
    return limited(datasets.load_images("glyphs", Path()), count)


def test_two_extractions_of_one_set_at_once(tmp_path, tiny):
    """The second waits for the first, says so, and has nothing left to do."""
    started, notes = threading.Event(), (Notes(), Notes())
    encoders = Encoder(tiny, started, notes[1].told), Encoder(tiny)
    results = []

    def first():
        results.append(extractor(tmp_path, encoders[0], notes[0]).dataset(glyphs(40)))

    thread = threading.Thread(target=first)
    thread.start()
    assert started.wait(30)
    second = extractor(tmp_path, encoders[1], notes[1]).dataset(glyphs(40))
    thread.join()
    assert (results[0].encoded, second.encoded) == (40, 0)
    assert (encoders[0].images, encoders[1].images) == (40, 0)
    assert notes[0].notes == []
    path = feature_path(tmp_path, "tiny", "glyphs")
    assert notes[1].notes == [f"{path} is being extracted by another process: waiting."]
    assert len(hdf5.read_features(path)) == 40
    assert {p.name for p in path.parent.iterdir()} == {".glyphs.lock", "glyphs.h5"}


@pytest.mark.parametrize("room", [20_000, 50_000])
def test_a_disk_that_fills_up_loses_no_finished_part(tmp_path, tiny, room):
    """Full at the first part (33 kB), or at the feature file (72 kB) that holds them all."""
    whole = extractor(tmp_path / "whole", tiny, Notes()).dataset(glyphs(70))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))  # stands in for a full disk
    try:
        with pytest.raises(StoreError, match=r"^cannot write .*What was finished is kept\.$"):
            extractor(tmp_path, tiny, Notes()).dataset(glyphs(70))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    path = feature_path(tmp_path, "tiny", "glyphs")
    assert not path.exists()
    assert not list(path.parent.rglob("*.tmp"))
    resumed = extractor(tmp_path, tiny, Notes()).dataset(glyphs(70))
    assert resumed.encoded == (70 if room == 20_000 else 0)
    assert hdf5.read_features(path).digest == hdf5.read_features(whole.path).digest
