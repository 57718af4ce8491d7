"""AdaND against Algorithm 1 item by item, and its parts by hand."""

import dataclasses

import numpy as np
import pytest
from reference import adand as reference
from streams import of_features

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.detectors import adand
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
    return of_features(features, text[:3], 10.0, injected)


def run(**values):
    return build_run("adand", "", "", None, "", **values)


def test_the_detector_starts_as_torchs_linear_layers_do_from_the_streams_seed():
    features = np.ones((1, DIM), np.float32)
    config, data = run(), of_features(features, features, 10.0, seed=3)
    generator = np.random.Generator(np.random.PCG64(3))
    weight, bias = generator.uniform(-0.25, 0.25, (2, DIM)), generator.uniform(-0.25, 0.25, 2)
    expected = adand.LinearDetector(weight, bias)  # within ±1/sqrt(16)
    method = adand.AdaND(data, config.options, config.threshold)
    assert np.array_equal(method.detector.weight, expected.weight)


VARIANTS = [
    {}, {"update_every": 50, "warmup": 2}, {"update_every": 1, "warmup": 3},
    {"update_every": 7, "warmup": 0}, {"update_every": 1, "late_start": True}, {"late_start": True},
    {"reevaluate": False}, {"reevaluate": False, "pseudo_labels": "detector"},
    {"batch_size": 2, "warmup": 40}, {"batch_size": 16},
    {"batch_size": 24, "pseudo_labels": "detector"}, {"late_start": True, "warmup": 0},
]  # fmt: skip


def adand_of(data, values, start=0.25):
    """AdaND's settings, and the method with a detector of its own."""
    config = run(**{"update_every": 32, "warmup": 4, "queue": 64, "learning_rate": 0.01} | values)
    generator = np.random.default_rng(3)
    weight = generator.uniform(-start, start, (2, DIM)).astype(np.float32)
    bias = generator.uniform(-start, start, 2).astype(np.float32)
    method = adand.AdaND(data, config.options, config.threshold)
    method.detector = adand.LinearDetector(weight, bias)
    return config, method, (weight, bias)


@pytest.mark.parametrize("values", VARIANTS, ids=str)
def test_adand_is_algorithm_1_in_pieces_of_any_size(values):
    data = rounded(stream(300))
    config, method, layer = adand_of(data, values)
    is_noise, id_score = reference.adand(data, config, *layer)
    cuts = [b * config.options.batch_size for b in (0, 3, 7, 12)]
    parts = [slice(a, b) for a, b in zip(cuts, [*cuts[1:], None], strict=True)]
    decisions = Decisions.joined([method.push(data.part(part)) for part in parts])
    np.testing.assert_allclose(decisions.id_score, id_score, atol=2e-4)
    assert np.array_equal(decisions.is_noise, is_noise)
    assert np.array_equal(decisions.class_index, data.class_index)


def rounded(data):
    """The stream with noise scores in steps of 0.01, so that some lie on a threshold."""
    return dataclasses.replace(data, own_score=data.noise_score.round(2))


@pytest.mark.parametrize(("seen", "stage"), [(0, 1), (40, 1), (128, 2), (130, 2)])
def test_without_learning_an_image_is_decided_by_what_was_learned(seen, stage):
    """In stage 1 by ZS-CLIP's threshold, and once the fourth step is made by the detector's."""
    data = stream()
    _, method, _ = adand_of(data, {})
    before, rest = data.part(slice(0, seen)), data.part(slice(seen, None))
    method.push(before)
    assert method.adapted == (stage == 2)
    decisions = method.push(rest, learn=False)
    u = rest.noise_score
    v = method.detector.scores(rest.features())
    score, online = (u, method.zero_shot) if stage == 1 else (v, method.threshold)
    np.testing.assert_allclose(decisions.id_score, 1 - score)
    assert np.array_equal(decisions.is_noise, score > online.latest)
    assert 0 < decisions.is_noise.mean() < 1
    assert method.seen == seen
