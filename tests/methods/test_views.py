"""The views that TPT tunes on: their generator, ranges, AugMix on and off."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFilter

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


def test_a_view_of_one_colour_keeps_it():
    """Geometry moves black in from the borders; no value leaves the hull of the operations'."""
    grey = Image.new("RGB", (40, 40), (96, 96, 96))
    generator = np.random.default_rng(0)
    crops = views.image_views(grey, 16, 20, False, generator)
    assert (crops == 96).all()
    mixed = views.image_views(grey, 16, 20, True, generator)
    assert mixed.min() >= 0
    assert mixed[:, 6:10, 6:10].max() <= 96.01  # nothing here brightens this grey


@settings(max_examples=200, deadline=None)
@given(
    width=st.integers(1, 400), height=st.integers(1, 400), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_crops_lie_within_the_image(width, height, seed):
    generator = np.random.default_rng(seed)
    left, upper, right, lower = views._random_box((width, height), generator)
    assert 0 <= left < right <= width
    assert 0 <= upper < lower <= height


def test_crops_have_the_area_and_aspect_they_should():
    generator = np.random.default_rng(0)
    boxes = np.array([views._random_box((400, 300), generator) for _ in range(2_000)])
    widths, heights = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    area, aspect = widths * heights / 120_000, widths / heights
    assert 0.075 < area.min() < 0.12
    assert 0.9 < area.max() <= 1
    assert aspect.min() > 0.73
    assert aspect.max() < 1.36
    assert abs((boxes[:, 0] + boxes[:, 2]).mean() / 2 - 200) < 5


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


def test_no_operation_changes_what_it_is_given():
    """A chain starts from the view that the others start from too."""
    picture = photo(64, 64).filter(ImageFilter.BLUR)
    for operation in OPERATIONS:
        before = picture.tobytes()
        changed = operation(picture, np.random.default_rng(3))
        assert picture.tobytes() == before
        assert (changed.size, changed.mode) == (picture.size, picture.mode)
    assert len(OPERATIONS) == 9
