"""The views that TPT tunes on: their generator, ranges, AugMix on and off."""

import numpy as np
from PIL import Image

from zsntta_cli.methods.live import views
from zsntta_cli.methods.live.views import OPERATIONS


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


def drawn(operation, values):
    """What the last row of a grey row of pixels becomes, by an operation with chosen draws."""

    class Draws:
        uniform = staticmethod(lambda low, high: high)
        random = staticmethod(lambda: 0.9)  # positive

    grey = np.repeat(np.uint8([[[v] for v in values]]), 3, axis=2)
    return np.asarray(OPERATIONS[operation](Image.fromarray(grey), Draws()))[0, :, 0].tolist()


def test_operations_by_hand():
    assert drawn(0, [10, 20, 30]) == [0, 127, 255]  # contrast
    assert drawn(2, [255, 17, 3]) == [240, 16, 0]  # 4 bits: the strength is below 1
    assert drawn(3, [229, 230, 255]) == [229, 230, 0]  # above 256 - 25
    assert drawn(7, [10, 20, 30] * 10) == [0, *([10, 20, 30] * 10)[:-1]]  # a thirtieth of 30
    assert drawn(4, [50] * 3) == [50] * 3  # of one row
