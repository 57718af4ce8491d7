"""How images are read, as it is typed: deep, turned, transparent, cut off, broken, too large."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from made import TINY, fails
from PIL import Image

from zsntta_cli.cache.hdf5 import read_features
from zsntta_cli.cache.origin import origin_of
from zsntta_cli.datasets import decoding
from zsntta_cli.datasets.drawn.builtin import render

ROOT = Path(__file__).parents[2]
NAMES = ",".join(render("shapes").class_names)
SHAPES = ("--classes", NAMES, *TINY)
EXTRACT = ("extract", *TINY, "--noise", "none", "--dataset")


def rows(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def again(folder, save):
    """Write each picture of `pictures` once more, by the same names."""
    for path in sorted(Path("pictures").rglob("*.png")):
        target = Path(folder, path.relative_to("pictures"))
        target.parent.mkdir(parents=True, exist_ok=True)
        save(Image.open(path).convert("L"), target)
    return folder


def deep(image, path):
    Image.fromarray(np.array(image).astype(np.uint16) * 257).save(path)


def lying(image, path):
    exif = Image.Exif()
    exif[274] = 6
    image.transpose(Image.Transpose.ROTATE_90).save(path, exif=exif)


def clear(image, path):
    """Its dark is transparent, and black below: on white it is the picture turned to light."""
    image.putalpha(Image.fromarray(np.array(image.convert("L"))))
    image.save(path)


def verdicts(result):
    names = ("class", "answer", "rank", "score", "threshold")
    return [[row[name] for name in names] for row in rows(result)]


def test_16_bit_and_turned_pictures_have_the_verdicts_of_the_plain_ones(pictures):
    plain = pictures("detect", again("plain", lambda image, path: image.save(path)), *SHAPES)
    expected = verdicts(plain)
    for save in (deep, lying):
        result = pictures("detect", again(save.__name__, save), *SHAPES)
        for one, other in zip(verdicts(result), expected, strict=True):
            assert one[:3] == other[:3]
            assert one[3:] == pytest.approx(other[3:], abs=0.02)  # of batches of other images
        notes = {row["note"] for row in rows(result)}
        told = "note: 60 images of more than 8 bits were brought to 8."
        assert notes == ({"brought to 8 bits from 16"} if save is deep else {None})
        assert (told in result.stderr) == (save is deep)
        replayed = pictures("detect", save.__name__, *SHAPES)
        assert replayed.stdout == result.stdout
        assert replayed.stderr == result.stderr


def test_features_of_a_set_that_was_cut_off_at_255_are_told_apart(pictures, monkeypatch):
    again("deep", deep)
    again("plain", lambda image, path: image.save(path))
    result = pictures(*EXTRACT, "deep=deep", "--dataset", "plain=plain")
    assert result.exit_code == 0, result.output
    assert "note: deep: images of more than 8 bits are brought to 8." in result.stderr
    one, other = (read_features(Path(f"features/tiny/{name}.h5")) for name in ("deep", "plain"))
    np.testing.assert_array_equal(one.image_features, other.image_features)
    assert "bits" in one.source
    assert other.source.keys() == {"dataset", "images", "limit", "digest", "image_sizes"}
    # As an earlier version made it: of the same files, and nothing is said of their bits.
    with monkeypatch.context() as earlier:
        earlier.setattr("zsntta_cli.datasets.images.is_deep", lambda _: False)
        assert pictures(*EXTRACT, "deep=deep", "--overwrite").exit_code == 0
    fails(
        pictures(*EXTRACT, "deep=deep"),
        "made from other images: they have more than 8 bits, which were cut off",
        "--overwrite",
        stdout=None,
    )
    assert pictures(*EXTRACT, "plain=plain").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("form", ["folder", ".tar", "shards"])
def test_as_shown_is_of_the_sets_identity_and_goes_to_all_processes(pictures, form):
    from made import pack

    again("plain", lambda image, path: image.save(path))
    again("lying", lying)
    where = {"folder": ["plain", "lying"], ".tar": ["plain.tar", "lying.tar"]}.get(
        form, ["plain-{0..0}.tar", "lying-{0..0}.tar"]
    )
    for name, packed in zip(("plain", "lying"), where, strict=True):
        files = {
            str(path.relative_to(name)): path.read_bytes()
            for path in sorted(Path(name).rglob("*.png"))
        }
        if form != "folder":
            pack(Path(packed.replace("{0..0}", "0")), files)
    lying_set = f"lying={where[1]}"
    assert pictures(*EXTRACT, f"plain={where[0]}").exit_code == 0
    processes = ("--device", "cpu,cpu", "--batch-size", "5") if form == "folder" else ()
    shown = pictures(*EXTRACT, lying_set, "--as-shown", *processes)
    assert shown.exit_code == 0, shown.output
    one, other = (read_features(Path(f"features/tiny/{name}.h5")) for name in ("lying", "plain"))
    assert one.source["as_shown"] is True
    cosines = (one.image_features.astype(float) * other.image_features).sum(1)
    norms = [np.linalg.norm(f.image_features.astype(float), axis=1) for f in (one, other)]
    assert (cosines / norms[0] / norms[1]).min() > 0.9999
    assert "there already" in pictures(*EXTRACT, lying_set, "--as-shown").stdout
    fails(pictures(*EXTRACT, lying_set), "read as shown, now not: --overwrite", stdout=None)
    assert pictures(*EXTRACT, lying_set, "--overwrite").exit_code == 0
    published = read_features(Path("features/tiny/lying.h5"))
    assert "as_shown" not in published.source
    assert not np.allclose(published.image_features, other.image_features, atol=0.01)
    again_shown = pictures(*EXTRACT, lying_set, "--as-shown")
    fails(again_shown, "read as published, now as shown: --overwrite", stdout=None)


def test_transparent_pixels_are_white(pictures):
    on_white = lambda image, path: Image.composite(image, Image.new("L", image.size, 255), image)  # noqa: E731
    again("clear", clear)
    again("white", lambda image, path: on_white(image, path).save(path))
    one, other = (verdicts(pictures("detect", name, *SHAPES)) for name in ("clear", "white"))
    for first, second in zip(one, other, strict=True):
        assert first[:3] == second[:3]
        assert first[3:] == pytest.approx(second[3:], abs=0.02)


def test_a_second_run_with_a_broken_file_does_not_load_torch(pictures):
    Path("pictures/x/broken.png").write_bytes(b"no image")
    code = (
        "import sys; from zsntta_cli.cli import app\n"
        f"try: app(['detect', 'pictures', '--classes', {NAMES!r}, '--model', 'tiny'])\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules, file=sys.stderr)"
    )
    time.sleep(4.5)  # until the copies' stamps are trusted
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
        *said, last = done.stderr.splitlines()
        assert last == "0 False"
        assert "Not read: it is a text (1 file, the first pictures/x/broken.png)." in said


def test_what_is_cut_off_too_large_or_heic(pictures, monkeypatch):
    path = Path("pictures/x/00000.png")
    Image.open(path).convert("RGB").resize((200, 200)).save("pictures/x/cut.jpg")
    content = Path("pictures/x/cut.jpg").read_bytes()
    Path("pictures/x/cut.jpg").write_bytes(content[: len(content) // 2])
    Image.new("1", (1_000, 1_100)).save("pictures/x/large.png")
    Path("pictures/x/photo.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(40))
    if "HEIF" in Image.OPEN:  # another test registered it
        monkeypatch.setitem(Image.OPEN, "HEIF", (Image.OPEN["HEIF"][0], lambda _: False))
    monkeypatch.setattr(decoding, "LARGE_MEGAPIXELS", 1)
    plain = decoding.find_spec
    monkeypatch.setattr(
        decoding, "find_spec", lambda name: None if name == "pillow_heif" else plain(name)
    )
    monkeypatch.setattr(decoding, "_heif_version", lambda: "none")
    result = pictures("detect", "pictures/x", *SHAPES)
    found = {Path(row["source"]).name: row for row in rows(result)}
    assert found["cut.jpg"]["note"] == "cut off: read as far as it goes"
    assert found["large.png"]["note"] == "large: 1.1 megapixels"
    assert (
        found["photo.heic"]["error"] == "it is a HEIC photo: pip install 'zsntta[heic]' reads them"
    )
    assert "note: 1 image is cut off, and read as far as it goes.\n" in result.stderr
    assert "note: 1 image has more than 89 megapixels.\n" in result.stderr
    assert "Warning" not in result.stderr
    Image.new("1", (1_000, 1_200)).save("pictures/x/large.png")
    less = pictures("detect", "pictures/x", *SHAPES, "--max-megapixels", "1.1")
    [large] = [row for row in rows(less) if "large" in row["source"]]
    assert large["error"] == "it has 1.2 megapixels, more than 1.1: --max-megapixels allows more"
    more = pictures("detect", "pictures/x", *SHAPES, "--max-megapixels", "1.2")
    [large] = [row for row in rows(more) if "large" in row["source"]]
    assert (large["error"], large["note"]) == (None, None)
    fails(pictures("detect", "x", *SHAPES, "--max-megapixels", "0"), "must be above 0", code=2)


def test_a_heic_photo_has_the_verdict_of_its_picture(pictures):
    pillow_heif = pytest.importorskip("pillow_heif")
    for path in sorted(Path("pictures/star").iterdir()):
        image = Image.open(path).convert("RGB").resize((224, 224), Image.Resampling.BICUBIC)
        Path("heic").mkdir(exist_ok=True)
        Path("png").mkdir(exist_ok=True)
        image.save(f"png/{path.name}")
        pillow_heif.from_pillow(image).save(f"heic/{path.stem}.heic", quality=95)
    one, other = (rows(pictures("detect", name, *SHAPES)) for name in ("heic", "png"))
    assert one
    assert [row["error"] for row in one] == [None] * len(one)
    assert [row["class"] for row in one] == [row["class"] for row in other]


def test_live_methods_read_a_set_as_its_features_were_read(pictures):
    again("lying", lying)
    again("plain", lambda image, path: image.save(path))
    for name, options in (("lying", ("--as-shown",)), ("plain", ())):
        made = pictures(*EXTRACT, f"{name}={name}", *options)
        assert made.exit_code == 0, made.output
    records = [
        json.loads(pictures("simulate", *TINY, "--method", "tent", "--id", name, "--ratio", "0",
                            "--noise", "none", "--dataset", f"{name}={name}", "--limit", "20",
                            "--format", "json").stdout)[0]
        for name in ("lying", "plain")
    ]  # fmt: skip
    one, other = (record["detection"]["id_accuracy"] for record in records)
    assert one == other
    shown = pictures("cache", "show", "lying", *TINY)
    assert "as_shown" in shown.stdout


def test_a_recorded_run_says_how_its_set_was_extracted(pictures):
    again("lying", lying)
    assert pictures(*EXTRACT, "lying=lying", "--as-shown").exit_code == 0
    origin = origin_of(read_features(Path("features/tiny/lying.h5")))
    assert origin["as_shown"] is True


def test_extraction_refuses_what_is_cut_off_as_before(pictures):
    path = Path("pictures/x/00000.png")
    path.write_bytes(path.read_bytes()[:-60])
    for options in ((), ("--as-shown",)):
        fails(pictures(*EXTRACT, "x=pictures", *options), "cannot read image 'x/00000.png'")


def test_a_dry_run_says_how_many_photos_classes_are_made_of(pictures):
    said = pictures(*EXTRACT, "mine=pictures", "--class-photos", "pictures", "--dry-run")
    assert said.exit_code == 0
    assert "pictures: 60 example photos of 11 classes\n" in said.stdout
    fails(
        pictures(*EXTRACT, "mine=pictures", "--class-photos", "none", "--dry-run"),
        "cannot read the example photos in none",
        stdout=None,
    )


def test_class_photos_are_read_as_the_images_are(pictures):
    again("lying", lying)
    again("plain", lambda image, path: image.save(path))
    for name in ("plain", "lying"):
        Path(name, "x").rename(f"{name}-x")
    one, other = (
        rows(pictures("detect", "plain-x", "--class-photos", name, *TINY))
        for name in ("plain", "lying")
    )
    for row, same in zip(one, other, strict=True):
        assert row["class"] == same["class"]
        assert row["score"] == pytest.approx(same["score"], abs=0.02)
