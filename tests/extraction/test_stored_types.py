"""`extract --store float32`: features as the encoder gives them, and nothing of both types."""

from pathlib import Path

import numpy as np
from made import PROMPT

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.datasets.images import limited


def shapes(count=40):
    return limited(datasets.load_images("shapes", Path()), count)


def test_features_in_float32_are_the_encoders_to_the_bit_and_float16_are_them_rounded(
    extractor, tiny
):
    images = shapes(16)
    exact = store.read(extractor(store="float32").dataset(images, [PROMPT]).path)
    pixels = np.stack([tiny.resize(images.read(i)) for i in range(16)])
    by_encoder = np.concatenate([tiny.encode_pixels(pixels[i : i + 8]) for i in (0, 8)])
    rows = exact.image_features[:]
    assert exact.image_features.dtype == np.float32
    np.testing.assert_array_equal(rows, by_encoder)
    rounded = store.read(extractor(overwrite=True).dataset(images, [PROMPT]).path)
    np.testing.assert_array_equal(rounded.image_features[:], rows.astype(np.float16))
    assert rounded.digest != exact.digest
