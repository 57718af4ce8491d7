"""`--precision amp`: features and steps are those that torch's autocast to float16 makes."""

import numpy as np
import pytest
import torch
import towers
from made import CONFIG

from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.methods.live import tent
from zsntta_cli.methods.live.base import adapting, norm_layers
from zsntta_cli.methods.live.settings import Tent
from zsntta_cli.settings import EncoderChoice

PROMPT, NAMES = "a photo of a {}.", ["cat", "dog", "tree", "house", "fish"]


@pytest.fixture(scope="module")
def encoders():
    """A small CLIP of chance in fp32 and under amp."""
    name = "clip-autocast-quickgelu"
    with towers.registered({name: {**CONFIG, "quick_gelu": True}}):
        yield [load_encoder(EncoderChoice(name, "none", p), "cpu") for p in ("fp32", "amp")]


def inputs(count):
    return torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def test_weights_stay_float32_and_features_are_halves(encoders):
    plain, amp = encoders
    assert {p.dtype for p in amp.model.parameters()} == {torch.float32}
    assert plain.identity["weights_sha256"] == amp.identity["weights_sha256"]
    assert amp.identity["precision"] == "amp"
    features, texts = amp.encode_images(inputs(6)), amp.encode_texts(NAMES)
    assert np.array_equal(features, features.astype(np.float16).astype(np.float32))
    with torch.no_grad(), torch.autocast("cpu", torch.float16):
        expected = amp.model.encode_image(inputs(6)).float().numpy()
    assert np.array_equal(features, expected)
    for found, other in ((features, plain.encode_images(inputs(6))),
                         (texts, plain.encode_texts(NAMES))):  # fmt: skip
        assert not np.array_equal(found, other)
        np.testing.assert_allclose(found, other, atol=0.02 * abs(other).max())
    assert "slow in float16" in amp.notes[-1]
    assert not any("float16" in note for note in plain.notes)


def live_data(encoder, count):
    return towers.of_inputs(encoder, inputs(count), NAMES, scale=encoder.identity["logit_scale"])


def test_a_step_of_tent_is_that_of_autocast(encoders):
    """Against the step as one writes it: everything under autocast, and no scaler of gradients."""
    amp, options = encoders[1], Tent.Settings(batch_size=8, learning_rate=1e-3, pipeline="all")
    data, everything = live_data(amp, 8), np.ones(8, bool)
    before = {name: p.detach().clone() for name, p in amp.model.named_parameters()}
    with tent.adaptable(data, options) as steps:
        steps.adapt(np.arange(8), data.logits(amp.image_features(inputs(8))), everything)
        found = [p.detach().clone() for p in steps.parameters]
    assert all(torch.equal(before[name], p) for name, p in amp.model.named_parameters())
    with adapting(amp, list(norm_layers(amp.model.visual).values())) as parameters:
        optimizer = torch.optim.Adam(parameters, 1e-3)
        with torch.autocast("cpu", torch.float16):
            raw = amp.model.encode_image(inputs(8)).float()
            unit = raw / raw.norm(dim=-1, keepdim=True)
            logits = (amp.identity["logit_scale"] * unit @ data.text_features.T).float()
            (-(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1)).mean().backward()
        assert max(p.grad.abs().max() for p in parameters) > 0
        optimizer.step()
        expected = [p.detach().clone() for p in parameters]
    moved = torch.cat([(a - b).flatten() for a, b in zip(found, expected, strict=True)])
    assert (moved.abs() > 1e-5).float().mean() < 0.01  # Adam's first step has gradients' signs
