"""What the encoder is fed is open_clip's own transform to the bit, whatever a model asks for."""

import numpy as np
import open_clip
import pytest
import torch
from families import register
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image

from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.encoders.weights import Weights
from zsntta_cli.settings import EncoderChoice

HALF = {"mean": (0.5,) * 3, "std": (0.5,) * 3}
ASKED = [
    {}, {**HALF, "resize_mode": "squash"}, {**HALF, "resize_mode": "longest"},
    {"interpolation": "bilinear", "mean": (0.0,) * 3, "std": (1.0,) * 3},  # MobileCLIP's
    {"resize_mode": "squash", "interpolation": "bilinear"},
    {"resize_mode": "longest", "interpolation": "bilinear", "fill_color": 7},
]  # fmt: skip


@pytest.fixture(scope="module")
def model():
    with pytest.MonkeyPatch.context() as patch:
        register(patch)
        yield load_encoder(EncoderChoice("metaclip", "none"), "cpu").model


def fed_as(model, asked):
    """The encoder and open_clip's transform by such a configuration."""
    config = {"size": 32, **asked}
    model.visual.preprocess_cfg = {**vars(PreprocessCfg()), **config}
    tokenize = open_clip.SimpleTokenizer()
    choice = EncoderChoice("metaclip", "none")
    encoder = Encoder(Weights(model, ""), tokenize, choice, torch.device("cpu"))
    return encoder, image_transform_v2(PreprocessCfg(**config), is_train=False)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_any_picture_is_fed_as_open_clip_does_it(model, asked):
    encoder, reference = fed_as(model, asked)

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(
        st.integers(1, 120), st.integers(1, 120), st.sampled_from(["RGB", "L", "P", "RGBA", "LA"]),
        st.integers(0, 2**32),
    )  # fmt: skip
    def check(height, width, mode, seed):
        # A side that would shrink to nothing is open_clip's own error.
        assume(
            asked.get("resize_mode") != "longest" or 32 * min(height, width) >= max(height, width)
        )
        pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
        image = Image.fromarray(pixels).convert(mode)
        found = encoder.normalize(np.stack([encoder.resize(image)]))[0]
        assert torch.equal(found, reference(image))

    check()
