"""What extract, import, show, list and verify say of zero-shot accuracy."""

from pathlib import Path

import numpy as np
import pytest
from made import PROMPT, TINY
from PIL import Image

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import float32_of
from zsntta_cli.datasets.drawn.builtin import render

IMAGES = 1_500


def encoded(encoder, pictures):
    return encoder.encode_pixels(np.stack([encoder.resize(p) for p in pictures]))


FOUND = "published for tiny embedded, 'a photo of a {}.': 83.11"


@pytest.fixture(scope="module")
def shapes(tiny):
    """Features of the first shapes, their labels, and the text features of their names."""
    images = render("shapes")
    rows = encoded(tiny, [images.image(i) for i in range(IMAGES)])
    text = tiny.encode_texts([PROMPT.format(name) for name in images.class_names])
    return rows, images.labels[:IMAGES], text, images


@pytest.fixture
def take_in(zsntta, shapes, tmp_path):
    """Import them, some of it changed, as features of `shapes` by the embedded encoder."""
    rows, labels, text, images = shapes

    def run(name="shapes", encoder="tiny-embedded", **changed):
        arrays = {"features": rows, "labels": labels, "text_features": text} | changed
        np.savez(tmp_path / "own.npz", **arrays, class_names=np.array(images.class_names))
        return zsntta("cache", "import", name, "--features", "own.npz", "--encoder", encoder,
                      "--logit-scale", "20")  # fmt: skip

    return run


def test_features_as_they_should_be_are_within(take_in, zsntta, shapes):
    result = take_in()
    assert result.exit_code == 0, result.output
    rows, labels, text, _ = shapes
    share = ((float32_of(np.asarray(rows)) @ text.T).argmax(1) == labels).mean()
    assert f"shapes: zero-shot accuracy {100 * share:.2f} % ({FOUND}; within " in result.stderr
    assert "warning" not in result.stderr
    assert f"{100 * share:.2f}" in zsntta("cache", "list").stdout
    assert f"zero-shot accuracy {100 * share:.2f}" in zsntta("cache", "show", "shapes").stdout
    verified = zsntta("cache", "verify", "--published")
    assert verified.exit_code == 0
    assert f"ok; zero-shot accuracy {100 * share:.2f} %" in verified.stdout


def test_a_label_column_in_another_order_is_named(take_in, zsntta, shapes):
    result = take_in(labels=(shapes[1] + 1) % 10)
    assert result.exit_code == 0
    assert "warning: tiny-embedded/shapes: labels seem to be in another order" in result.stderr
    assert "'square' for 'circle'" in result.stderr
    verified = zsntta("cache", "verify", "--published")
    assert verified.exit_code == 1
    assert "error: 1 of 1 files bad" in verified.stderr
    assert zsntta("cache", "verify").exit_code == 0, "the file itself is whole"
    assert " !" in zsntta("cache", "list").stdout


def test_an_unknown_set_in_another_order_is_named_too(take_in, shapes):
    result = take_in("mine", "whoever", labels=(shapes[1] + 3) % 10)
    assert "labels seem to be in another order" in result.stderr
    assert "published" not in result.stderr


def test_names_in_another_order_than_text_features_warn(take_in, tiny, shapes):
    names = [PROMPT.format(name) for name in reversed(shapes[3].class_names)]
    assert "another order" in take_in(text_features=tiny.encode_texts(names)).stderr


def test_a_wrong_template_warns(take_in, tiny, shapes):
    names = [f"not a {name}, nor two of them, at night" for name in shapes[3].class_names]
    text = tiny.encode_texts(names)
    result = take_in(text_features=text)
    assert "points below the published accuracy" in result.stderr
    assert "class names, the order of labels, interpolation (bicubic), QuickGELU" in result.stderr


def test_images_that_were_resized_bilinearly_warn(take_in, tiny, shapes):
    """By way of a third of the size, as thumbnails are made."""
    images = shapes[3]

    def blurred(i):
        image = images.image(i)
        small = image.resize((10, 10), Image.Resampling.BILINEAR)
        return small.resize(image.size, Image.Resampling.BILINEAR)

    result = take_in(features=encoded(tiny, map(blurred, range(IMAGES))))
    assert "points below the published accuracy" in result.stderr


def test_a_part_without_whole_classes_has_no_verdict(take_in, shapes):
    few = shapes[1] < 3
    result = take_in(features=shapes[0][few], labels=shapes[1][few])
    assert "zero-shot accuracy" in result.stderr
    assert "published" not in result.stderr


def test_extract_says_which_classes_it_has_found(zsntta, picture_folder):
    result = zsntta("extract", *TINY, "--dataset", f"own={picture_folder}", "--noise", "none")
    assert result.exit_code == 0, result.output
    assert (
        "note: own: 12 images, labels from the folders, 2 classes: big_cat, dog\n" in result.stderr
    )
    assert "own: zero-shot accuracy " in result.stderr
    assert "hold" not in result.stderr


def test_class_folders_one_deeper_are_noticed(zsntta, picture_folder, tmp_path):
    for part in ("train", "val"):
        (tmp_path / "deep" / part).mkdir(parents=True)
        for folder in picture_folder.iterdir():
            target = tmp_path / "deep" / part / folder.name
            target.mkdir()
            for file in folder.iterdir():
                (target / file.name).write_bytes(file.read_bytes())
    result = zsntta("extract", *TINY, "--dataset", "own=deep", "--noise", "none")
    assert "note: own: 24 images, labels from the folders, 2 classes: train, val\n" in result.stderr
    assert (
        "note: the 2 class folders of own hold 2 folders of images (big_cat, dog). If those are "
        "the classes, name the folders above them: --dataset own=deep/val\n" in result.stderr
    )


def test_a_partner_is_not_said_to_have_an_accuracy(cached):
    assert hdf5.read_header(Path("features/tiny/glyphs.h5")).templates == ()
    assert "zero-shot" not in cached("cache", "show", "glyphs", *TINY).stdout
