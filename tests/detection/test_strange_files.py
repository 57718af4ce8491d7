"""Files that are no pictures, and the account of a folder of these and of others."""

import io
import json
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from made import TINY
from PIL import Image

PICTURE = Image.fromarray(np.random.default_rng(1).integers(0, 256, (9, 12, 3), np.uint8)).resize(
    (240, 160), Image.Resampling.BICUBIC
)
NAMES = ("--classes", "circle,square")


def file(form):
    content = io.BytesIO()
    PICTURE.save(content, form)
    return content.getvalue()


def awful(root):
    """Files, links and pipes of all kinds, and two folders of systems with more."""
    good = {f"good {i}{ending}": file(form) for i, (ending, form) in enumerate([
        (".jpg", "JPEG"), (".jpe", "JPEG"), (".mpo", "MPO"), (".apng", "PNG"), (".heic", "JPEG"),
        (".png", "WEBP"), (".BMP", "BMP"), (".ppm", "PPM"), (".jpg_original", "JPEG"),
    ])}  # fmt: skip
    whole = good["good 0.jpg"]
    bad = {f"bad {i}.jpg": content for i, content in enumerate([
        b"", b"text", b"<html>404</html>", bytes(5000), b"%PDF-1.7\n", file("PNG")[:20],
        whole[: len(whole) // 2], b"version https://git-lfs.github.com/spec/v1\n",
    ])}  # fmt: skip
    bad["raw.cr2"] = file("TIFF")
    other = {
        "a.xmp": b"x", "Thumbs.db": b"\xd0\xcf", "clip.mov": b"", "old.zip": b"", "x.rar": b"",
        "drawing.svg": b"<svg/>", ".hidden.jpg": whole, "b": whole, "._good.jpg": b"\0\5\x16\7",
        "empty": b"",
    }  # fmt: skip
    for name, content in (good | bad | other).items():
        (root / name).write_bytes(content)
    (root / "again.jpg").symlink_to("good 0.jpg")
    (root / "gone.jpg").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    for folder in ("@eaDir", ".thumbnails"):
        (root / folder).mkdir()
        (root / folder / "thumb.jpg").write_bytes(whole)
    return {*good}, {*bad}, len(other)


@pytest.mark.parametrize("is_packed", [False, True])
def test_every_file_of_an_awful_folder_is_accounted_for(zsntta, tmp_path, is_packed):
    source = folder = tmp_path / "photos"
    folder.mkdir()
    good, bad, other = awful(folder)
    again = []
    if is_packed:
        source = tmp_path / "photos.zip"
        with zipfile.ZipFile(source, "w") as packed:
            for path in folder.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    packed.write(path)
    else:  # what only a folder has: a picture by two names, a link to nothing, a pipe
        good, bad, other, again = good - {"good 0.jpg"} | {"again.jpg"}, bad | {"gone.jpg"}, 11, [1]
    result = zsntta("detect", source, *NAMES, *TINY)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    names = {Path(row["source"]).name: row["error"] for row in rows}
    assert {name for name, error in names.items() if error} == bad
    assert {name for name, error in names.items() if not error} == good
    last = result.stderr.splitlines()[-1]
    numbers = [int(number) for number in re.findall(r"(\d+) [a-z]", last)]
    parts = [len(good), len(bad), *again, other]
    assert numbers == [sum(parts), *parts]
    [said] = [line for line in result.stderr.splitlines() if line.startswith("Left out: ")]
    assert "1 .mov" in said
    assert "2 hidden folders (.thumbnails, @eaDir): --all-folders reads folders, too" in said
    every = zsntta("detect", source, *NAMES, *TINY, "--all-folders")
    assert len(every.stdout.splitlines()) == len(rows) + 2


@pytest.mark.parametrize(
    ("content", "why", "more"),
    [(b"", "it is empty", "--fail-on-noise"),
     (b"<html>", "it is not a picture in a known format: it begins '<html>'", "-0")],
)  # fmt: skip
def test_nothing_that_could_be_read_is_no_all_clear(zsntta, tmp_path, content, why, more):
    (tmp_path / "photos").mkdir()
    for i in range(2):
        (tmp_path / f"photos/{i}.jpg").write_bytes(content)
    result = zsntta("detect", "photos", *NAMES, *TINY, more)
    assert result.exit_code == 1
    assert result.stderr.endswith("error: nothing was judged: 2 images could not be read.\n")
    assert f"Not read: {why} (2 files, the first photos/0.jpg)." in result.stderr
