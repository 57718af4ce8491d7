"""The built-in sets: what they hold, that they never change, and that training differs."""

import hashlib
from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_digits

from zsntta_cli.datasets.catalogue import BUILTIN
from zsntta_cli.datasets.drawn.builtin import noise_images, render
from zsntta_cli.settings import NOISE_TYPES

RENDERED = ("shapes", "glyphs", "textures", "other-shapes")


@pytest.mark.parametrize(
    ("name", "role", "count", "classes"),
    [
        ("shapes", "id", 10_000, 10),
        ("glyphs", "ood", 10_000, 20),
        ("textures", "ood", 10_000, 10),
        ("other-shapes", "ood", 10_000, 10),
        ("digits", "both", 1_797, 10),
    ],
)
def test_counts_and_balance(name: str, role: str, count: int, classes: int) -> None:
    images = render(name)
    entry = BUILTIN[name]
    assert (entry.role, entry.images, entry.classes) == (role, count, classes)
    assert (len(images), len(images.class_names)) == (count, classes)
    assert images.labels.dtype == np.int32
    per_class = np.bincount(images.labels, minlength=classes)
    assert len(images.labels) == len(set(images.sample_ids)) == count
    spread = 0 if name in RENDERED else 9  # scikit-learn's digits: 174 to 183 a class
    assert per_class.max() - per_class.min() == spread


def test_sample_ids_name_set_index_and_class() -> None:
    assert render("shapes").sample_ids[13] == "shapes/00013-star"
    assert render("textures").sample_ids[0] == "textures/00000-striped-texture"
    assert render("glyphs").sample_ids[9_999] == "glyphs/09999-z"
    assert render("digits").sample_ids[1] == "digits/00001-one"


def test_no_class_is_in_two_sets_and_captions_read_well() -> None:
    names = [class_name for name in BUILTIN for class_name in render(name).class_names]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    captions = {entry.prompt.format(render(n).class_names[3]) for n, entry in BUILTIN.items()}
    assert captions == {
        "a photo of a star.",
        "a photo of the letter E.",
        "a photo of a wavy texture.",
        "a photo of a house.",
        "a photo of the digit three.",
    }


# SHA-256 of the bytes of the first 200 images, noise with seed 3. x86 without AVX-512, or without
# AVX2 too, gives the same; where another machine rounds a pixel otherwise, PINNED above decides.
EXACT: dict[str, str] = {
    "shapes": "d33398def48a098c35b6a8bcefecf62048bfdc6665e2f0f16a4d256554a411b5",
    "glyphs": "9271fb4c2dd32474cb162425b6e11c8996f23c2569ad23df41fca764a15663b6",
    "textures": "435808f58a05bbdb7aa28070af4f8dfa08d62545e846d42d2da07aeee974ee40",
    "other-shapes": "a1df24ef7ccb5aa60aa3e70a0d94dd95635aa3e8ddbcb880c1df0d4435dac036",
    "digits": "86c82bc1851b143cfd6f7149015352c06e152f68fc6bb53d097d0445552f2c21",
    "noise-gaussian": "ad6373472562712ccbe8811f2435475def5c2b91a76cd813736465086aa5c5ea",
    "noise-uniform": "5b36500b08b5318a7653d00c3ed1f351e91acf73301c98bd2186df2412e91c47",
    "noise-salt-and-pepper": "d2cb0d67e5a73b1ebd3901795c4835e491ef7640a33d772e9b74fada1378f59c",
    "noise-poisson": "bea429a4aa083fb2abadecb2c30036b1f565ad0e1d9b97a34f9128bbc0f57aa3",
}


@pytest.mark.parametrize("name", list(EXACT))
def test_every_pixel_is_what_it_was(name: str) -> None:
    noise_type = name.removeprefix("noise-")
    images = render(name) if name in BUILTIN else noise_images(noise_type, 200, 32, seed=3)
    digest = hashlib.sha256(b"".join(images.read(i).tobytes() for i in range(200)))
    assert digest.hexdigest() == EXACT[name]


def test_digits_are_scikit_learns() -> None:
    digits, images = load_digits(), render("digits")
    assert images.labels.tolist() == digits.target.tolist()
    for i in (0, 1000, 1796):
        grey = np.asarray(images.read(i).reduce(4)).astype(float)
        assert np.array_equal(grey[..., 0], grey[..., 2])
        own = digits.images[i] * 255 / 16
        assert np.abs(grey[..., 0] - own).max() < 60  # bicubic enlarging overshoots at edges
        assert np.corrcoef(grey[..., 0].ravel(), own.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("noise_type", NOISE_TYPES)
def test_noise_images_depend_on_type_seed_and_index_alone(noise_type: str) -> None:
    few, many = noise_images(noise_type, 3, 16), noise_images(noise_type, 9, 16)
    assert np.array_equal(few.read(2), many.read(2))
    assert not np.array_equal(few.read(1), few.read(2))
    assert not np.array_equal(few.read(1), noise_images(noise_type, 3, 16, seed=1).read(1))
    image = np.asarray(many.read(0))
    assert image.shape == (16, 16, 3)
    assert (image.min(), image.max()) == (0, 255)
