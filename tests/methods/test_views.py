"""The views that TPT tunes on: their generator, ranges, AugMix on and off."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFilter
from reference import augmix as reference

from zsntta_cli.methods.live import views
from zsntta_cli.methods.live.augmix import (
    OPERATIONS,
    _contrasted,
    _posterized,
    _rotated,
    _sheared,
    _solarized,
    _translated,
)


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


@pytest.mark.parametrize("size", [32, 33, 224])
@pytest.mark.parametrize("blur", [0, 2])  # histograms full, and with empty places
def test_views_are_pillows_to_the_byte(size, blur):
    image = photo().filter(ImageFilter.GaussianBlur(blur))
    for augmix in (True, False):
        ours, pillows = (
            module.image_views(image, size, 12, augmix, np.random.default_rng(size))
            for module in (views, reference)
        )
        assert ours.tobytes() == pillows.tobytes()


@settings(max_examples=300, deadline=None)
@given(
    operation=st.integers(0, 8), width=st.integers(1, 40), height=st.integers(1, 40),
    values=st.integers(1, 256), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_operations_are_pillows_to_the_byte(operation, width, height, values, seed):
    """Of few values too: one colour has nothing to stretch, and two nothing to equalize."""
    low = (256 - values) // 2
    pixels = np.random.default_rng(seed).integers(low, low + values, (height, width, 3), np.uint8)
    ours, pillows = (np.random.default_rng(seed) for _ in range(2))
    changed = OPERATIONS[operation](pixels, ours)
    expected = reference.OPERATIONS[operation](Image.fromarray(pixels), pillows)
    assert np.array_equal(changed, np.asarray(expected))
    assert ours.random() == pillows.random()  # as many numbers drawn


@settings(max_examples=200, deadline=None)
@given(
    size=st.integers(1, 30), degrees=st.integers(-359, 359), seed=st.integers(0, 2**32),
    x=st.floats(-2, 2), y=st.floats(-2, 2),
)  # fmt: skip
def test_far_turns_and_shears_are_pillows_too(size, degrees, seed, x, y):
    pixels = np.random.default_rng(seed).integers(0, 256, (size, size + 2, 3), np.uint8)
    image = Image.fromarray(pixels)
    turned = np.asarray(image.rotate(degrees, Image.Resampling.BILINEAR))
    assert degrees % 90 == 0 or np.array_equal(_rotated(pixels, degrees), turned)
    assert np.array_equal(_sheared(pixels, x, y), np.asarray(reference.sheared(image, x, y)))


def test_operations_by_hand():
    grey = np.repeat(np.uint8([[[10], [20], [30]]]), 3, axis=2)
    assert _contrasted(grey)[0, :, 0].tolist() == [0, 127, 255]
    assert _translated(grey, 1, 0)[0, :, 0].tolist() == [0, 10, 20]
    assert _translated(grey, -2, 0)[0, :, 0].tolist() == [30, 0, 0]
    assert _posterized(np.uint8([255, 17, 3]), 4).tolist() == [240, 16, 0]
    assert _solarized(np.uint8([239, 240, 255]), 240).tolist() == [239, 15, 0]
    assert _sheared(grey, 1.0, 0.0)[0, :, 1].tolist() == [15, 25, 0]  # half a pixel


def test_no_operation_changes_what_it_is_given():
    """A chain starts from the view that the others start from too."""
    picture = np.asarray(photo(64, 64).filter(ImageFilter.BLUR)).copy()
    for operation in OPERATIONS:
        before = picture.copy()
        changed = operation(picture, np.random.default_rng(3))
        assert np.array_equal(picture, before)
        assert (changed.shape, changed.dtype) == (picture.shape, picture.dtype)
    assert len(OPERATIONS) == 9
