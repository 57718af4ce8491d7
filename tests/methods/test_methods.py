import dataclasses

import made
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import adand as reference

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.detectors import adand
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.simulation.runs import build_run

DIM = 16


def stream(items=600, seed=0):
    """Three ID clusters, noise elsewhere, an injected item after every eight."""
    generator = np.random.default_rng(seed)
    text = np.linalg.qr(generator.standard_normal((DIM, 4)))[0].T.astype(np.float32)
    centre = np.append(text[:3], 0.3 * text[3:], axis=0)[generator.integers(0, 4, items)]
    features = (10 * centre + generator.standard_normal((items, DIM))).astype(np.float32)
    injected = np.arange(items) % 9 == 8
    features[injected] = 5 * text[3] + generator.standard_normal((injected.sum(), DIM))
    scores = zero_shot(features, text[:3], 10.0)
    return StreamData(Pool(features, text[:3], 10.0, scores), np.arange(items), injected)


def run(method="adand", **values):
    return build_run(method, "", "", None, "", **values)


@pytest.mark.parametrize(("update_every", "warmup"), [(32, 5), (50, 2), (1, 3), (7, 0)])
def test_adand_is_algorithm_1(update_every, warmup):
    data = stream()
    config = run(update_every=update_every, warmup=warmup, queue=64, learning_rate=0.01)
    generator = np.random.default_rng(3)
    weight = generator.uniform(-0.25, 0.25, (2, DIM)).astype(np.float32)
    bias = generator.uniform(-0.25, 0.25, 2).astype(np.float32)
    is_noise, id_score = reference.adand(data, config, weight, bias)
    method = adand.AdaND(data, config.options, config.threshold)
    method.detector = adand.LinearDetector(weight, bias)
    decisions = method.push(data)
    np.testing.assert_allclose(decisions.id_score, id_score, atol=2e-4)
    assert np.array_equal(decisions.is_noise, is_noise)


def test_zs_clip_is_its_definition():
    data = stream()
    config = run("zs-clip", queue=64)
    expected = reference.zs_clip(data, config)
    assert np.array_equal(made.decisions(data, config).is_noise, expected)


def test_the_detector_learns_what_injected_noise_looks_like():
    data = stream(3000)
    decisions = made.decisions(data, run(update_every=32, learning_rate=0.01))
    late = np.arange(len(data)) > 1000
    assert decisions.is_noise[data.injected & late].mean() > 0.95


def test_a_random_detector_starts_as_torchs_linear_layer():
    weights = [adand.LinearDetector.random(512, seed).weight for seed in range(20)]
    # A difference of two values uniform in ±1/sqrt(D) has the variance 2/(3 D).
    assert np.var(weights) == pytest.approx(2 / (3 * 512), rel=0.05)
    assert not np.array_equal(weights[0], weights[1])


@settings(max_examples=30, deadline=None)
@given(
    items=st.integers(1, 200),
    batch_size=st.integers(1, 70),
    method=st.sampled_from(["zs-clip", "adand"]),
)
def test_every_item_gets_a_decision(items, batch_size, method):
    data = stream(items)
    decisions = made.decisions(data, run(method, batch_size=batch_size, warmup=1))
    assert len(decisions.is_noise) == len(decisions.id_score) == len(decisions.class_index) == items
    assert np.isfinite(decisions.id_score).all()


def test_every_method_is_where_its_line_says():
    for name, method in METHODS.items():
        assert callable(method.load()), name
        assert dataclasses.is_dataclass(method.settings_class), name
