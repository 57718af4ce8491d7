"""Syde without pixels: its parts by hand, and the whole against loops in float64."""

import dataclasses

import numpy as np
import pytest
from reference import syde as reference
from streams import of_features

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors import syde, zs_clip
from zsntta_cli.methods.detectors.linear import LinearDetector
from zsntta_cli.methods.detectors.som import SelfOrganisingMap
from zsntta_cli.methods.detectors.syde import SydeSettings
from zsntta_cli.methods.detectors.zs_clip import ZsClipSettings
from zsntta_cli.methods.learned import copied
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings

DIM, CLASSES = 16, 4
SMALL = SydeSettings(
    update_every=32, warmup=3, learning_rate=0.02, syde_shots=3, syde_map=3, syde_map_steps=20
)
QUEUE = ThresholdSettings(queue=64)


def stream(seed=0, count=400, known=0.1, scale=10.0):
    """Clusters of ID and of noise, and items that are known to be noise."""
    rng = np.random.default_rng(seed)
    text = unit(rng.normal(size=(CLASSES, DIM))).astype(np.float32)
    centres = np.concatenate([text, unit(rng.normal(size=(3, DIM)))])
    features = 10 * centres[rng.integers(len(centres), size=count)]
    features = (features + 1.5 * rng.normal(size=(count, DIM))).astype(np.float32)
    injected = rng.random(count) < known
    strange = injected & (rng.random(count) < 0.5)  # the others look like any item
    features[strange] = (rng.normal(size=(strange.sum(), DIM)) + 3).astype(np.float32)
    return of_features(features, text, scale, injected, seed=seed)


def start(seed, cells=9):
    rng = np.random.default_rng((seed, 1))
    layer = rng.uniform(-0.25, 0.25, (2, DIM)), rng.uniform(-0.25, 0.25, 2)
    return *layer, unit(rng.normal(size=(cells, DIM))).astype(np.float32)


def test_a_step_of_the_map_by_hand():
    # Cells 0 1 / 2 3 in one dimension; 0.9 is nearest to 1. Grid distances squared: 1, 0, 2, 1.
    cells = np.array([[0.0], [1.0], [2.0], [3.0]])
    som = SelfOrganisingMap(cells, rate=0.5, width=1.0)
    som.learn(np.array([[0.9]], np.float32), 1)
    near, far = 0.5 * np.exp(-0.5), 0.5 * np.exp(-1)
    expected = [0.9 * near, 0.95, 2 - 1.1 * far, 3 - 2.1 * near]
    np.testing.assert_allclose(som.cells[:, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(som.prototypes, [[0.9]], rtol=1e-6)


def test_rate_and_width_fall_by_hand():
    # One cell, two steps to 1 and 0: rates 0.5 and 0.5 / (1 + 1 / 1).
    som = SelfOrganisingMap(np.array([[0.0]]), rate=0.5, width=1.0)
    som.learn(np.array([[1.0], [0.0]], np.float32), 2)
    np.testing.assert_allclose(som.cells, [[0.5 * 0.75]])
    assert som.prototypes.tolist() == [[0.5]]
    som.learn(np.array([[2.0]], np.float32), 1)
    assert som.prototypes.tolist() == [[1.0]], "the mean of all that it won"
    som.learn(np.empty((0, 1), np.float32), 1)
    assert som.prototypes.tolist() == [[1.0]]


def test_the_map_is_the_references():
    rng = np.random.default_rng(0)
    samples, first = unit(rng.normal(size=(30, DIM))), unit(rng.normal(size=(9, DIM)))
    plain, som = reference.Map(first, SMALL), SelfOrganisingMap(first, 0.05, 2.0)
    for part in (samples[:7], samples[7:]):
        plain.learn(list(part))
        som.learn(part.astype(np.float32), SMALL.syde_map_steps)
    np.testing.assert_allclose(som.cells, plain.cells, atol=1e-5)
    np.testing.assert_allclose(unit(som.prototypes), plain.prototypes(), atol=1e-5)


def test_the_memory_by_hand():
    memory = syde.SydeMemory(np.eye(2, dtype=np.float32), shots=1)

    def offer(feature, c, entropy):
        memory.offer(np.array([feature], np.float32), np.array([c]), np.array([entropy]))
        return pytest.approx(memory.proxies.ravel(), abs=1e-4)

    assert offer([0, 1], 0, 0.5) == [0.7071, 0.7071, 0, 1]
    assert offer([1, 0], 0, 0.7) == [0.7071, 0.7071, 0, 1]  # more entropy
    assert offer([0.6, 0.8], 1, 0.9) == [0.7071, 0.7071, 0.3162, 0.9487]
    assert offer([1, 0], 0, 0.3) == [1, 0, 0.3162, 0.9487]  # takes its place


def adapt(data, options, detector, cells):
    """The decisions on a stream from a given start."""
    method = syde.Syde(data, options, QUEUE)
    method.detector = copied(detector)
    method.map = syde.SelfOrganisingMap(cells, options.syde_map_rate, options.syde_map_width)
    return method.push(data)


@pytest.mark.parametrize("known", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "change",
    [{}, {"warmup": 0}, {"syde_gap": 0.0}, {"syde_entropy": 0.5}, {"syde_visual": 0.7}],
    ids=str,
)
def test_every_decision_is_the_references(known, seed, change):
    data, options = stream(seed, known=known), dataclasses.replace(SMALL, **change)
    weight, bias, cells = start(seed)
    classes, is_noise, id_score = reference.syde(data, options, QUEUE, weight, bias, cells)
    found = adapt(data, options, LinearDetector(weight, bias), cells)
    np.testing.assert_allclose(found.id_score, id_score, atol=2e-4)
    assert np.array_equal(found.is_noise, is_noise)
    assert np.array_equal(found.class_index, classes)


def test_the_reference_test_sees_every_part_at_work():
    data = stream(1)
    weight, bias, cells = start(1)

    def decide(**change):
        options = dataclasses.replace(SMALL, **change)
        return adapt(data, options, LinearDetector(weight, bias), cells)

    usual = decide()
    for change in ({"syde_gap": 0.0}, {"syde_entropy": 0.5}, {"syde_map_rate": 0.5}):
        assert not np.allclose(decide(**change).id_score, usual.id_score, atol=1e-3), change
    assert (decide(syde_visual=1.0).class_index != usual.class_index).any()


def test_in_the_warm_up_it_is_zs_clip():
    data = stream(2, known=0)
    warm = SMALL.warmup * SMALL.update_every
    ours = syde.Syde(data, SMALL, QUEUE).push(data).part(slice(warm))
    plain = zs_clip.ZsClip(data, ZsClipSettings(), QUEUE).push(data).part(slice(warm))
    for name in ("class_index", "is_noise", "id_score"):
        assert np.array_equal(getattr(ours, name), getattr(plain, name))
    assert np.isnan(ours.detector_threshold).all()


def test_known_noise_is_noise_and_never_in_the_memory():
    data = stream(3, known=0.3)
    assert syde.Syde(data, SMALL, QUEUE).push(data).is_noise[data.injected].all()
    # An image of class 0 that is known to be noise: were it clean, the class would move to it.
    features = data.pool.image_features.copy()
    features[data.injected] = 10 * data.pool.text_features[0] + features[data.injected] / 10
    moved = dataclasses.replace(data.pool, image_features=features)
    part = slice(0, SMALL.update_every)
    known = StreamData(moved, data.index, data.injected)
    ring = syde.SydeQueue.of(known, part, data.injected[part])
    learner, scale = syde.Syde(known, SMALL, QUEUE), np.float32(known.pool.logit_scale)
    before = learner.memory.proxies.copy()
    only = dataclasses.replace(ring, is_noise=np.ones(len(ring.x), bool))
    learner.learn(only, scale)
    assert np.array_equal(learner.memory.proxies, before)
    learner.learn(dataclasses.replace(ring, is_noise=np.zeros(len(ring.x), bool)), scale)
    assert not np.array_equal(learner.memory.proxies, before)


def test_without_labels_the_detector_stays_as_it_is():
    data = stream(4, known=0)
    options = dataclasses.replace(SMALL, syde_entropy=0.0)  # every item is too doubtful
    weight, bias, cells = start(4)
    detector = LinearDetector(weight, bias)
    found = adapt(data, options, detector, cells).part(slice(96, None))
    logits = detector.logits(data.features(slice(96, None)))
    np.testing.assert_allclose(found.id_score, 1 / (1 + np.exp(logits)), atol=1e-6)
