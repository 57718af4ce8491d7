"""Damage within files, files that are something else, and the account of a folder of both."""

import io
import json
import os
import re
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made import TINY
from PIL import Image, PngImagePlugin

from zsntta_cli.datasets.decoding import as_extracted, as_shown, kinds_of
from zsntta_cli.datasets.first_bytes import is_picture, why_unread

PICTURE = Image.fromarray(np.random.default_rng(1).integers(0, 256, (9, 12, 3), np.uint8)).resize(
    (240, 160), Image.Resampling.BICUBIC
)
NAMES = ("--classes", "circle,square")


def file(form, image=PICTURE, **options):
    content = io.BytesIO()
    image.save(content, form, **options)
    return content.getvalue()


# Files that say where they are damaged: by what their decoder warns of, or by checksums.
CHECKED = {
    "JPEG": file("JPEG", quality=90),
    "progressive JPEG": file("JPEG", quality=90, progressive=True),
    "CMYK JPEG": file("JPEG", PICTURE.convert("CMYK"), quality=90),
    "grey JPEG": file("JPEG", PICTURE.convert("L"), quality=90),
    "MPO": file("MPO", quality=90),
    "PNG": file("PNG"),
    "JPEG in TIFF": file("TIFF", compression="jpeg", quality=90),
    "deflated TIFF": file("TIFF", compression="tiff_adobe_deflate"),
}
FAX = file("TIFF", PICTURE.convert("1"), compression="group4")


@pytest.mark.parametrize("kind", CHECKED)
def test_a_whole_file_has_no_note(kind):
    assert as_shown(CHECKED[kind]).note == ""


@pytest.mark.parametrize("kind", CHECKED)
@given(st.floats(0.4, 0.58), st.binary(min_size=40, max_size=60))
@example(0.588165083562956, bytes(40))  # simplejpeg raises KeyError
@settings(max_examples=15)
def test_damage_in_the_middle_is_a_note(kind, where, junk):
    content = bytearray(CHECKED[kind])
    at = int(where * len(content))
    if "JPEG" in kind or kind == "MPO":
        junk = b"\xff\xd4" * (len(junk) // 2)  # marks that cannot be there; chance bits may be
    content[at : at + len(junk)] = junk
    if content == CHECKED[kind]:
        return
    try:
        note = as_shown(bytes(content)).note
    except (OSError, SyntaxError):  # a row with an error
        return
    assert set(kinds_of(note)) & {"damaged", "cut off"}


@pytest.mark.parametrize("where", [0.4, 0.45, 0.5, 0.55])
def test_a_damaged_fax_is_noted_and_nothing_else_is_said(capfd, where):
    assert as_shown(FAX).note == ""
    content = bytearray(FAX)
    at = int(where * len(content))
    content[at : at + 40] = b"\xff" * 40
    assert re.fullmatch(
        r"damaged: .* at line \d+ of strip 0 \(x \d+\)", as_shown(bytes(content)).note
    )
    assert capfd.readouterr() == ("", "")
    assert as_shown(FAX).note == "", "an error is of one file"


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("kind", ["zTXt", "iTXt", "tEXt", "iCCP", "many"])
def test_a_png_with_large_texts_is_read(kind, place):
    info, options = PngImagePlugin.PngInfo(), {}
    text, late = "x" * 2_000_000, {"after_idat": place == "after"} if kind != "iTXt" else {}
    if kind == "iCCP":
        options["icc_profile"] = bytes(2_000_000)
    elif kind == "iTXt":
        info.add_itxt("workflow", text, zip=True)
    elif kind == "many":
        for i in range(70):
            info.add_text(f"key {i}", "x" * 1_000_000, zip=True)
    else:
        packed = b"workflow\0\0" + zlib.compress(text.encode())
        plain = b"workflow\0" + text.encode()
        info.add(kind.encode(), packed if kind == "zTXt" else plain, **late)
    content = file("PNG", pnginfo=info, **options)
    shown = as_shown(content)
    assert shown.note == ""
    np.testing.assert_array_equal(np.asarray(shown.image), np.asarray(PICTURE))
    np.testing.assert_array_equal(np.asarray(as_extracted(content)), np.asarray(PICTURE))


@pytest.mark.parametrize(
    "form", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "PPM", "AVIF", "JPEG2000", "MPO"]
)
def test_pictures_are_known_by_their_first_bytes(form):
    assert is_picture(file(form))
    assert not is_picture(file(form)[1:])


NO_PICTURES = {
    b"": "it is empty",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n": "it is a git-lfs pointer: git",
    b"<html>404</html>": "it is a web page",
    b"\n<!DOCTYPE HTML>\n<title>x": "it is a web page",
    b'{"error": "expired"}': "it is a text",
    b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>": "it is a text",
    bytes(5000): "it has only zeros: its content was lost",
    b"\0\0\0\x20ftypisom" + bytes(range(60)): "it is a video",
    b"%PDF-1.7\n": "it is a PDF",
    b"bplist00" + bytes(range(40)): "it is a placeholder of iCloud",
    b"PK\x03\x04" + bytes(range(40)): "it is a ZIP archive",
    file("PNG")[:20]: "it is cut off or damaged in its head",
    b"\xff\x0a" + bytes(range(40)): "it is a JPEG XL picture, which is not read",
}


@pytest.mark.parametrize("content", NO_PICTURES, ids=NO_PICTURES.get)
def test_what_is_no_picture_says_what_it_is(content):
    assert why_unread(content).startswith(NO_PICTURES[content])
    with pytest.raises(OSError, match=re.escape(NO_PICTURES[content])):
        as_shown(content)
    with pytest.raises(OSError, match=re.escape(NO_PICTURES[content])):
        as_extracted(content)


def awful(root):
    """Forty files, links and pipes of all kinds, and two folders of systems with more."""
    good = {f"good {i}{ending}": file(form) for i, (ending, form) in enumerate([
        (".jpg", "JPEG"), (".jpe", "JPEG"), (".mpo", "MPO"), (".apng", "PNG"), ("", "JPEG"),
        (".jpg_original", "JPEG"), (".txt", "PNG"), (".jpg.part", "JPEG"), (".heic", "JPEG"),
        (".mp4", "GIF"), (".NEF", "JPEG"), (".png", "WEBP"), (".x", "BMP"), (".y", "PPM"),
    ])}  # fmt: skip
    bad = {f"bad {i}.jpg": content for i, content in enumerate(NO_PICTURES)}
    other = {
        "a.xmp": b"x", "Thumbs.db": b"\xd0\xcf", "clip.mov": b"", "old.zip": b"", "x.rar": b"",
        "raw.cr2": file("TIFF"), "drawing.svg": b"<svg/>", ".hidden.jpg": good["good 0.jpg"],
        "._good.jpg": b"\0\5\x16\7", "empty": b"",
    }  # fmt: skip
    for name, content in (good | bad | other).items():
        (root / name).write_bytes(content)
    (root / "again.jpg").symlink_to("good 0.jpg")
    (root / "gone.jpg").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    for folder in ("@eaDir", ".thumbnails"):
        (root / folder).mkdir()
        (root / folder / "thumb.jpg").write_bytes(good["good 0.jpg"])
    return good, bad, other


@pytest.mark.parametrize("is_packed", [False, True])
def test_every_file_of_an_awful_folder_is_accounted_for(zsntta, tmp_path, is_packed):
    folder = tmp_path / "photos"
    folder.mkdir()
    good, bad, other = awful(folder)
    there = [path for path in folder.iterdir() if not path.is_dir()]
    assert len(there) == 40
    judged, again, gone, pipe = len(good), 1, 1, 1
    source = "photos"
    if is_packed:
        source = "photos.zip"
        again = gone = pipe = 0
        with zipfile.ZipFile(source, "w") as packed:
            for path in folder.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    packed.write(path)
    result = zsntta("detect", source, *NAMES, *TINY)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    errors = {Path(row["source"]).name for row in rows if row["error"]}
    assert errors == {*bad} | ({"gone.jpg"} if gone else set())
    assert {Path(row["source"]).name for row in rows} - errors == (
        {*good} if is_packed else {*good} - {"good 0.jpg"} | {"again.jpg"}
    )
    last = result.stderr.splitlines()[-1]
    numbers = [int(number) for number in re.findall(r"(\d+) [a-z]", last)]
    expected = [judged, len(bad) + gone, *([again] if again else []), len(other) + pipe]
    assert numbers == [sum(expected), *expected]
    assert numbers[0] == (37 if is_packed else 40)
    [said] = [line for line in result.stderr.splitlines() if line.startswith("Left out: ")]
    assert "1 archive (old.zip), read only if you name them; 1 video (clip.mov)" in said
    assert "2 hidden folders (.thumbnails, @eaDir): --all-folders reads folders, too" in said
    every = zsntta("detect", source, *NAMES, *TINY, "--all-folders")
    assert len(every.stdout.splitlines()) == len(rows) + 2


@pytest.mark.parametrize(
    ("content", "more"),
    [
        (b"", ()),
        (b"<html>", ("--fail-on-noise",)),
        (b"version https://git-lfs.github.com/x", ("--only", "noise", "-0")),
    ],
)
def test_nothing_that_could_be_read_is_no_all_clear(zsntta, tmp_path, content, more):
    (tmp_path / "photos").mkdir()
    for i in range(5):
        (tmp_path / f"photos/{i}.jpg").write_bytes(content)
    result = zsntta("detect", "photos", *NAMES, *TINY, *more)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == (
        "error: nothing was judged: not one of 5 images could be read."
    )
    assert f"Not read: {why_unread(content)} (5 files, the first photos/0.jpg)." in result.stderr
