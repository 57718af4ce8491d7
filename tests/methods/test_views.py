"""The views that TPT tunes on: their generator, ranges, AugMix on and off."""

import numpy as np
from PIL import Image

from zsntta_cli.methods.live import views


def photo(width=90, height=60):
    generator = np.random.default_rng(1)
    return Image.fromarray(generator.integers(0, 256, (height, width, 3), np.uint8))


def test_views_are_those_of_their_generator():
    def make(seed, augmix=True):
        generator = np.random.Generator(np.random.PCG64([seed, 5]))
        return views.image_views(photo(), 32, 6, augmix, generator)

    assert make(0).shape == (6, 32, 32, 3)
    assert np.array_equal(make(0), make(0))
    assert not np.array_equal(make(0), make(1))
    assert not np.array_equal(make(0), make(0, augmix=False))
    for augmix in (True, False):
        assert 0 <= make(0, augmix).min() < 64
        assert 192 < make(0, augmix).max() <= 255.01
    plain = make(0, augmix=False)
    assert np.array_equal(plain, plain.round())  # a crop's values are bytes
    assert len({view.tobytes() for view in plain}) == 6
