"""`--precision amp`: logits and steps are those that torch's autocast to float16 makes."""

import copy
import hashlib
import pickle

import numpy as np
import pytest
import torch
import towers
from hypothesis import given
from hypothesis import strategies as st
from made import CONFIG, decisions
from PIL import Image

from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.images import NoiseDetector
from zsntta_cli.encoders.clip import autocast_note, load_encoder
from zsntta_cli.methods.base import Decisions, Pool, StreamData
from zsntta_cli.methods.live import tent, tpt
from zsntta_cli.methods.live.adaptation import norm_layers
from zsntta_cli.methods.live.settings import TentSettings
from zsntta_cli.methods.scores import AutocastScale, cosine_logits, scale_under, zero_shot
from zsntta_cli.settings import PRECISIONS, EncoderChoice
from zsntta_cli.simulation.digests import run_digests
from zsntta_cli.simulation.runs import build_run

PROMPT, NAMES = "a photo of a {}.", ["cat", "dog", "tree", "house", "fish"]


def drawn(count, classes, dim=64):
    """Raw features of images, as a file has them, and text features."""
    generator = np.random.default_rng(3)
    images = generator.normal(0, 1, (count, dim)).astype(np.float16)
    text = generator.normal(0, 1, (classes, dim)).astype(np.float32)
    text[: min(classes, count)] += images[: min(classes, count)].astype(np.float32)
    return images, text / np.linalg.norm(text, axis=1, keepdims=True)


def by_torch(features, text, scale):
    """The released code's lines, under torch's own autocast."""
    with torch.autocast("cpu", torch.float16):
        raw = torch.from_numpy(features).float()  # norms of halves are float32 on a GPU
        image = raw / raw.norm(dim=-1, keepdim=True)
        logits = torch.tensor(scale) * image @ torch.from_numpy(text).T
    assert logits.dtype == torch.float16
    return logits.float().numpy()


def half_steps(values):
    """The distance to the next float16 number."""
    return np.spacing(np.abs(values).astype(np.float16)).astype(np.float32)


@pytest.mark.parametrize("classes", [1, 7, 100])
def test_logits_are_those_of_torchs_autocast(classes):
    images, text = drawn(500, classes)
    found, expected = cosine_logits(images, text, AutocastScale(100)), by_torch(images, text, 100.0)
    differ = found != expected  # by the rounding of float32's sums, which torch has
    assert differ.mean() < 0.01
    assert (abs(found - expected) <= 2.0**-11 * 100).all()
    big = abs(expected) > 1
    assert (abs(found - expected)[big] <= half_steps(expected)[big]).all()
    plain = cosine_logits(images, text, 100.0)
    assert (plain != found).mean() > 0.9
    assert abs(plain - found).max() < 0.05


def test_logits_near_25_have_steps_of_a_64th():
    angle = np.linspace(0.2, 0.3, 1000)  # cosines
    features = np.column_stack([angle, np.sqrt(1 - angle**2)]).astype(np.float32)
    logits = cosine_logits(features, np.eye(2, dtype=np.float32)[:1], AutocastScale(100))
    assert np.array_equal(logits * 64, np.rint(logits * 64))
    assert len(np.unique(logits)) < 1000
    by_hand = np.float16(np.float16(100 * np.float32(0.25)))
    assert cosine_logits(features[500:501], np.eye(2, dtype=np.float32)[:1], AutocastScale(100))[
        0, 0
    ] == pytest.approx(by_hand, abs=1 / 64)


def test_a_zero_feature_has_no_opinion_under_autocast_either():
    found = zero_shot(np.zeros((1, 2), np.float16), np.eye(2, dtype=np.float32), AutocastScale(100))
    assert found.noise_score[0] == 0.5


@given(st.integers(1, 1100))
def test_what_stands_beside_a_row_changes_no_bit_of_it(count):
    images, text = drawn(1100, 40, 16)
    whole = cosine_logits(images, text, AutocastScale(100))
    assert np.array_equal(cosine_logits(images[:count], text, AutocastScale(100)), whole[:count])


def test_one_row_of_many_classes_is_that_of_a_thousand():
    images, text = drawn(1000, 600, 512)  # above what has one order of adding in float32
    whole = cosine_logits(images, text, AutocastScale(100))
    for row in (0, 500, 999):
        alone = cosine_logits(images[row : row + 1], text, AutocastScale(100))
        assert np.array_equal(alone[0], whole[row])


def test_the_precision_of_an_encoder_says_how_logits_are_made():
    assert isinstance(scale_under("amp", 100.0), AutocastScale)
    for precision in {*PRECISIONS, None} - {"amp"}:
        assert type(scale_under(precision, 100.0)) is float
    images, text = drawn(60, 5)
    pool = Pool.scored(images.astype(np.float32), text, AutocastScale(100))
    logits = cosine_logits(images, text, AutocastScale(100))
    top = np.sort(logits, axis=1)[:, ::-1]
    assert np.array_equal(pool.detail.top_logits, top)
    stream = StreamData(pool, np.arange(60), np.zeros(60, bool))
    assert np.array_equal(stream.logits(slice(None)), logits)
    part = stream.seen_as(slice(0, 9), images[:9].astype(np.float32))
    assert np.array_equal(part.logits(slice(None)), logits[:9])


def test_runs_of_amp_have_keys_of_their_own_and_others_theirs():
    class File:
        digest, normalized = "d", False

    def digests(**identity):
        return run_digests(
            "shapes", [("shapes", File())], "t", {"logit_scale": 100.0, **identity}, None
        )

    assert digests(precision="fp16") == digests(precision="fp32") == digests()
    assert digests(precision="amp") != digests()
    before = hashlib.sha256(b"t 100.0 False").hexdigest()  # as before there was amp
    assert digests(precision="fp32") == {"shapes": "d", "text/shapes": before}


def test_a_detector_keeps_its_kind_of_logits():
    images, text = drawn(80, 5)
    detector = OnlineDetector(text, AutocastScale(100), "ridge")
    plain = OnlineDetector(text, 100.0, "ridge")
    first = detector.update(images[:40].astype(np.float32)).score
    assert not np.array_equal(first, plain.update(images[:40].astype(np.float32)).score)
    others = [copy.deepcopy(detector), pickle.loads(pickle.dumps(detector))]
    expected = detector.predict(images[40:].astype(np.float32)).score
    for other in others:
        assert isinstance(other.logit_scale, AutocastScale)
        assert np.array_equal(other.predict(images[40:].astype(np.float32)).score, expected)


def test_a_detector_of_images_has_the_logits_of_its_encoder():
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8))
    detector = NoiseDetector(NAMES, "tiny", precision="amp")
    [first] = detector.update([image])
    assert isinstance(detector.logit_scale, AutocastScale)
    again = pickle.loads(pickle.dumps(detector))
    assert isinstance(again.logit_scale, AutocastScale)
    assert again.encoder.identity["precision"] == "amp"
    plain = NoiseDetector(NAMES, "tiny")
    [other] = plain.update([image])
    assert type(plain.logit_scale) is float
    assert first.score != other.score
    assert first.score == pytest.approx(other.score, abs=0.05)


# The encoder


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
    assert "slow in float16" in autocast_note(amp)
    assert autocast_note(plain) is None


def live_data(encoder, count):
    scale = scale_under(encoder.identity["precision"], encoder.identity["logit_scale"])
    return towers.of_inputs(encoder, inputs(count), NAMES, scale=scale)


def test_live_logits_are_those_of_a_replay(encoders):
    data = live_data(encoders[1], 20)
    features = data.stream.pool.image_features
    live = data.logits(torch.from_numpy(features), data.text_features())
    replayed = data.stream.logits(slice(None))
    assert live.dtype == torch.float32
    assert (live.numpy() != replayed).mean() < 0.05
    np.testing.assert_allclose(live, replayed, atol=1 / 64)


def test_a_step_of_tent_is_that_of_autocast(encoders):
    """Against the step as one writes it: everything under autocast, and no scaler of gradients."""
    amp, options = encoders[1], TentSettings(batch_size=8, learning_rate=1e-3, pipeline="all")
    data, everything = live_data(amp, 8), np.ones(8, bool)
    before = {name: p.detach().clone() for name, p in amp.model.named_parameters()}
    with tent.adaptable(data, options) as adapting:
        adapting.predict(inputs(8), everything)
        adapting.adapt(np.arange(8), everything)
        found = [p.detach().clone() for p in adapting._adapted.masters]
    assert all(torch.equal(before[name], p) for name, p in amp.model.named_parameters())
    layers = list(norm_layers(amp.model.visual).values())
    parameters = [p for layer in layers for p in layer.parameters(recurse=False)]
    optimizer = torch.optim.Adam(parameters, 1e-3)
    try:
        with torch.autocast("cpu", torch.float16):
            raw = amp.model.encode_image(inputs(8)).float()
            unit = raw / raw.norm(dim=-1, keepdim=True)
            logits = amp.identity["logit_scale"] * unit @ data.text_features().T
            logits = logits.float()
            (-(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1)).mean().backward()
        gradients = torch.cat([p.grad.flatten() for p in parameters])
        optimizer.step()
        expected = [p.detach().clone() for p in parameters]
    finally:
        for name, p in amp.model.named_parameters():
            p.data.copy_(before[name])
            p.grad = None
    assert gradients.abs().max() > 0
    moved = torch.cat([(a - b).flatten() for a, b in zip(found, expected, strict=True)])
    assert (moved.abs() > 1e-5).float().mean() < 0.01  # Adam's first step has gradients' signs


@pytest.mark.parametrize("method", ["tent", "sotta", "tpt"])
def test_live_methods_decide_nearly_as_in_fp32(encoders, method):
    values = {"tent": {"batch_size": 8}, "sotta": {"update_every": 8}, "tpt": {"views": 4}}[method]
    run = build_run(method, "", "shapes", None, PROMPT, **values)
    if method == "tpt":
        parts = [tuning_logits(encoder) for encoder in encoders]
    else:
        joined = [Decisions.joined(list(decisions(live_data(e, 24), run))) for e in encoders]
        parts = [one.id_score for one in joined]
    assert not np.array_equal(*parts)
    np.testing.assert_allclose(*parts, atol=0.1)


def tuning_logits(encoder):
    data = live_data(encoder, 4)
    options = build_run("tpt", "", "shapes", None, PROMPT, views=4, keep=0.5).options
    with tpt.adapting(encoder, []):
        return tpt.PromptTuning(data, options)(0, inputs(3)).detach().numpy()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_logits_are_those_of_a_gpus_autocast():
    images, text = drawn(500, 100, 512)
    with torch.autocast("cuda", torch.float16):
        raw = torch.from_numpy(images).cuda()
        image = raw / raw.norm(dim=-1, keepdim=True)
        assert image.dtype == torch.float32
        logits = torch.tensor(100.0).cuda() * image @ torch.from_numpy(text).cuda().T
        assert logits.softmax(dim=-1).dtype == torch.float32
    assert logits.dtype == torch.float16
    found = cosine_logits(images, text, AutocastScale(100))
    assert (logits.float().cpu().numpy() != found).mean() < 0.02
    np.testing.assert_allclose(logits.float().cpu(), found, atol=1 / 32)
