"""How images are read, as it is typed: deep, turned, transparent, cut off, too large."""

import json
from pathlib import Path

import numpy as np
import pytest
from detected import SHAPES, rows
from made import TINY, fails, pack
from PIL import Image

from zsntta_cli.cache import store
from zsntta_cli.cache.origin import origin_of

EXTRACT = ("extract", *TINY, "--noise", "none", "--dataset")


def again(folder, save):
    """Write each picture of `pictures` once more, by the same names."""
    for path in sorted(Path("pictures").rglob("*.png")):
        target = Path(folder, path.relative_to("pictures"))
        target.parent.mkdir(parents=True, exist_ok=True)
        save(Image.open(path).convert("L"), target)
    return folder


def plain(image, path):
    image.save(path)


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


def white(image, path):
    Image.composite(image, Image.new("L", image.size, 255), image).save(path)


def features(name):
    return store.read(Path(f"features/tiny/{name}.h5"))


@pytest.mark.parametrize(("save", "like"), [(deep, plain), (lying, plain), (clear, white)])
def test_pictures_have_the_verdicts_of_what_they_show(pictures, save, like):
    result, other = (pictures("detect", again(one.__name__, one), *SHAPES) for one in (save, like))
    for row, expected in zip(rows(result), rows(other), strict=True):
        assert [row[k] for k in ("class", "answer", "rank")] == [
            expected[k] for k in ("class", "answer", "rank")
        ]
        for name in ("score", "threshold"):  # of batches of other images
            assert row[name] == pytest.approx(expected[name], abs=0.02)
        assert row["note"] == ("reduced to 8 bits" if save is deep else None)
    assert ("60 images: reduced to 8 bits" in result.stderr) == (save is deep)


@pytest.mark.parametrize("form", ["folder", "tar", "shards"])
def test_as_shown_is_of_the_sets_identity(pictures, form):
    for save in (plain, lying):
        again(save.__name__, save)
        paths = sorted(Path(save.__name__).rglob("*.png"))
        pack(Path(f"{save.__name__}-0.tar"), {str(path): path.read_bytes() for path in paths})
    ending = {"folder": "", "tar": "-0.tar", "shards": "-{0..0}.tar"}[form]
    lying_set = f"lying=lying{ending}"
    assert pictures(*EXTRACT, f"plain=plain{ending}").exit_code == 0
    shown = pictures(*EXTRACT, lying_set, "--as-shown")
    assert shown.exit_code == 0, shown.output
    one, other = features("lying"), features("plain")
    assert one.source["as_shown"] is True
    assert origin_of(one)["as_shown"] is True
    assert "as_shown" in pictures("cache", "show", "lying", *TINY).stdout
    cosines = (one.image_features.astype(float) * other.image_features).sum(1)
    norms = [np.linalg.norm(f.image_features.astype(float), axis=1) for f in (one, other)]
    assert (cosines / norms[0] / norms[1]).min() > 0.9999
    assert "already extracted" in pictures(*EXTRACT, lying_set, "--as-shown").stdout
    fails(pictures(*EXTRACT, lying_set), "as_shown", "--overwrite", stdout=None)
    assert pictures(*EXTRACT, lying_set, "--overwrite").exit_code == 0
    published = features("lying")
    assert "as_shown" not in published.source
    assert not np.allclose(published.image_features, other.image_features, atol=0.01)


def test_live_methods_read_a_set_as_its_features_were_read(pictures):
    for save, options in ((lying, ("--as-shown",)), (plain, ())):
        name = again(save.__name__, save)
        assert pictures(*EXTRACT, f"{name}={name}", *options).exit_code == 0
    one, other = (
        json.loads(pictures("simulate", *TINY, "--method", "tent", "--id", name, "--ratio", "0",
                            "--noise", "none", "--dataset", f"{name}={name}", "--limit", "20",
                            "--format", "json").stdout)[0]["detection"]["id_accuracy"]
        for name in ("lying", "plain")
    )  # fmt: skip
    assert one == other


def test_what_is_cut_off_or_too_large_has_its_error(pictures):
    Image.open("pictures/x/00000.png").convert("RGB").resize((200, 200)).save("pictures/x/cut.jpg")
    content = Path("pictures/x/cut.jpg").read_bytes()
    Path("pictures/x/cut.jpg").write_bytes(content[: len(content) // 2])
    Image.new("1", (1_000, 1_200)).save("pictures/x/large.png")
    for most, error in (("1.1", "more than 1.1 megapixels"), ("1.2", "None")):
        result = pictures("detect", "pictures/x", *SHAPES, "--max-megapixels", most)
        errors = {Path(row["source"]).name: str(row["error"]) for row in rows(result)}
        assert "truncated" in errors["cut.jpg"]
        assert error in errors["large.png"]
