"""The built-in sets: what they hold, that they never change, and that training differs."""

import hashlib
from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_digits

from zsntta_cli.datasets.catalogue import BUILTIN
from zsntta_cli.datasets.drawn.builtin import noise_images, render
from zsntta_cli.settings import NOISE_TYPES


def test_no_class_is_in_two_sets_and_captions_read_well():
    names = [class_name for name in BUILTIN for class_name in render(name).class_names]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    captions = {entry.prompt.format(render(n).class_names[3]) for n, entry in BUILTIN.items()}
    assert captions == {
        "a photo of a star.", "a photo of the letter E.", "a photo of a wavy texture.",
        "a photo of a house.", "a photo of the digit three.",
    }  # fmt: skip


# Digests of the bytes of the first 200 images, and of labels, ids and class names; noise with seed
# 3. x86 without AVX-512, or without AVX2 too, gives the same.
EXACT = {
    "shapes": ("d33398def48a098c35b6a8bcefecf620", "0d055dab9010b495f06f337c6ca2e08a"),
    "glyphs": ("9271fb4c2dd32474cb162425b6e11c89", "a4520e232c98ce3521ad17a511b03803"),
    "textures": ("435808f58a05bbdb7aa28070af4f8dfa", "487675694232a33e1060f3b6d0edce7b"),
    "other-shapes": ("a1df24ef7ccb5aa60aa3e70a0d94dd95", "ee63b318fbc2cf66f8802eab866c1cd8"),
    "digits": ("86c82bc1851b143cfd6f7149015352c0", "429069074476680b6677a7fd74eeae17"),
    "noise-gaussian": ("ad6373472562712ccbe8811f2435475d", "28360c7483610cdba0af5a0cbf5d25ee"),
    "noise-uniform": ("5b36500b08b5318a7653d00c3ed1f351", "d15fb5bc91df0ce805181103267ea9b0"),
    "noise-salt-and-pepper": (
        "d2cb0d67e5a73b1ebd3901795c4835e4", "23535e6531f3bf392b9a960dea37cb09"
    ),
    "noise-poisson": ("bea429a4aa083fb2abadecb2c30036b1", "f28b80c533f2866db418231e746f608a"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_every_pixel_label_and_id_is_what_it_was(name):
    noise_type = name.removeprefix("noise-")
    images = render(name) if name in BUILTIN else noise_images(noise_type, 200, 32, seed=3)
    digest = hashlib.sha256(b"".join(images.read(i).tobytes() for i in range(200)))
    assert (digest.hexdigest()[:32], images.identity()["digest"][:32]) == EXACT[name]
    if name in BUILTIN:
        entry = BUILTIN[name]
        assert (len(images), len(images.class_names)) == (entry.images, entry.classes)


def test_digits_are_scikit_learns():
    digits, images = load_digits(), render("digits")
    assert images.labels.tolist() == digits.target.tolist()
    for i in (0, 1000, 1796):
        grey = np.asarray(images.read(i).reduce(4)).astype(float)
        assert np.array_equal(grey[..., 0], grey[..., 2])
        own = digits.images[i] * 255 / 16
        assert np.abs(grey[..., 0] - own).max() < 60  # bicubic enlarging overshoots at edges
        assert np.corrcoef(grey[..., 0].ravel(), own.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("noise_type", NOISE_TYPES)
def test_noise_images_depend_on_type_seed_and_index_alone(noise_type):
    few, many = noise_images(noise_type, 3, 16), noise_images(noise_type, 9, 16)
    assert np.array_equal(few.read(2), many.read(2))
    assert not np.array_equal(few.read(1), few.read(2))
    assert not np.array_equal(few.read(1), noise_images(noise_type, 3, 16, seed=1).read(1))
    image = np.asarray(many.read(0))
    assert image.shape == (16, 16, 3)
    assert (image.min(), image.max()) == (0, 255)
