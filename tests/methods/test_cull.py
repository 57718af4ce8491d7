"""Cull against its item-by-item reference, and what must hold for any stream."""

import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learned import state_of
from reference.cull import cull as reference
from streams import of_features

from zsntta_cli.methods.base import SURE
from zsntta_cli.methods.detectors import cull
from zsntta_cli.methods.detectors.cull import CullSettings, Sums, _quantile, otsu
from zsntta_cli.methods.scores import unit, zero_shot, zero_shot_detail
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

OPTIONS = CullSettings()


def stream_of(features, text, injected=None):
    return of_features(features, text, 30.0, injected)


@cache
def world(seed, count=700, ratio=0.25, classes=12, dim=24):
    """Images around their class's text, noise around a few other points; labels, -1 for noise."""
    rng = np.random.default_rng(seed)
    text = unit(rng.normal(size=(classes, dim)) + 1)
    elsewhere = unit(rng.normal(size=(3, dim)) + 1)
    labels = np.where(rng.random(count) < ratio, -1, rng.integers(classes, size=count))
    centers = np.where(labels[:, None] < 0, elsewhere[rng.integers(3, size=count)], text[labels])
    # Classes are hard to a different degree, images too.
    spread = rng.uniform(0.08, 0.22, count) + rng.uniform(0, 0.08, classes)[labels]
    spread *= np.sqrt(24 / dim)
    features = 10 * (centers + spread[:, None] * rng.normal(size=(count, dim)))
    return features.astype(np.float32), text.astype(np.float32), labels


def decide(data, options=OPTIONS):
    return cull.Cull(data, options, ThresholdSettings()).push(data)


# --- the reference


@pytest.mark.parametrize(
    ("seed", "ratio", "options"),
    [
        (0, 0.25, OPTIONS),
        (1, 0.0, OPTIONS),
        (2, 0.03, CullSettings(cull_ring=300, cull_tail=2.0, cull_tail_deviations=2.0)),
        (3, 0.5, CullSettings(cull_first=40, cull_prior=1.0)),
    ],
)
def test_agrees_with_the_reference(seed, ratio, options):
    features, text, _ = world(seed, count=1500, ratio=ratio)
    injected = np.arange(1500) % 9 == 8
    data = stream_of(features, text, injected=injected)
    found = decide(data, options)
    expected = reference(data, options, ThresholdSettings())
    classes, is_noise, scores, thresholds, evidence, kinds = expected
    np.testing.assert_allclose(1 - found.id_score, scores, atol=2e-3)
    tests = ~injected
    np.testing.assert_allclose(found.detector_threshold[tests], thresholds[tests], atol=2e-3)
    clear = ~(np.abs(scores - thresholds) < 4e-3)  # rounding may turn a decision at the threshold
    assert clear.mean() > 0.97
    np.testing.assert_array_equal(found.is_noise[clear], is_noise[clear])
    assert (found.class_index == classes).mean() > 0.998  # in no order: of step 7 alone
    assert (found.class_index != data.class_index).any()  # the class prior does something
    np.testing.assert_allclose(
        found.evidence, evidence, atol=2e-2
    )  # ramps are eight times as steep
    near = np.abs(evidence - SURE) < 2e-2
    np.testing.assert_array_equal(found.evidence_kind[~near], kinds[~near])


def test_noise_from_elsewhere_is_found():
    features, text, labels = world(5, count=3000)
    data = stream_of(features, text)
    late = slice(1000, None)
    is_ood, found = labels[late] < 0, decide(data).is_noise[late]
    usual = (data.noise_score > OnlineThreshold(ThresholdSettings())(data.noise_score))[late]
    assert found[is_ood].mean() > usual[is_ood].mean() + 0.15
    assert found[~is_ood].mean() < usual[~is_ood].mean() + 0.02


# --- online (what holds of every method: test_invariants.py, test_online_methods.py)


def test_the_first_items_are_decided_as_zs_clip_does():
    features, text, _ = world(3)
    data = stream_of(features, text)
    found, u = decide(data), data.noise_score
    first = slice(OPTIONS.cull_first)
    expected = u > OnlineThreshold(ThresholdSettings())(u)
    np.testing.assert_array_equal(found.is_noise[first], expected[first])
    np.testing.assert_array_equal(found.class_index[first], data.class_index[first])
    assert np.isnan(found.detector_threshold[first]).all()
    assert not np.isnan(found.detector_threshold[OPTIONS.cull_first :]).any()


def test_state_does_not_grow():
    features, text, _ = world(0, count=6000, dim=8)
    data = stream_of(features, text)
    stepper, sizes = cull.Cull(data, OPTIONS, ThresholdSettings()), []
    for start in range(0, 6000, 500):
        stepper.push(data.part(slice(start, start + 500)))
        waiting = [
            v for k, v in state_of(stepper).items() if k.startswith((".block.", ".is_noise"))
        ]
        sizes.append(len(pickle.dumps(state_of(stepper))) - sum(v.nbytes for v in waiting))
    full = sizes[1:]  # the queue of 512 scores is not full after the first 500
    assert max(full) - min(full) < 64  # digits of counts


def test_state_is_of_dims_classes_and_ring_alone():
    text = unit(np.random.default_rng(0).normal(size=(1000, 512))).astype(np.float32)
    sums = cull.Cull(
        stream_of(np.zeros((0, 512), np.float32), text), OPTIONS, ThresholdSettings()
    ).sums
    given = ".pool.", ".options.", ".rule"
    learned = {k: v for k, v in state_of(sums).items() if not k.startswith(given)}
    assert sum(map(np.size, learned.values())) == 4 * 512 + 3 * 1000 + 5 * 1024 + 8


# --- injected noise


def test_injected_items_are_noise_and_teach_nothing():
    features, text, _ = world(4, count=900)
    injected = np.random.default_rng(0).random(900) < 0.2
    found = decide(stream_of(features, text, injected=injected))
    alone = decide(stream_of(features[~injected], text))
    assert found.is_noise[injected].all()
    np.testing.assert_array_equal(found.is_noise[~injected], alone.is_noise)
    np.testing.assert_array_equal(found.class_index[~injected], alone.class_index)


# --- odd streams


@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("dim", [2, 24])
def test_few_classes_and_dims(classes, dim):
    rng = np.random.default_rng(0)
    text = unit(rng.normal(size=(classes, dim)))
    found = decide(stream_of(rng.normal(size=(400, dim)), text))
    assert np.isfinite(found.id_score).all()
    assert set(found.class_index) <= set(range(classes))


@pytest.mark.parametrize("dim", [2048, 4096])
def test_many_dims(dim):
    features, text, labels = world(0, count=520, ratio=0.5, dim=dim)
    found = decide(stream_of(features, text))
    assert np.isfinite(found.id_score).all()
    is_ood = labels[260:] < 0
    assert found.is_noise[260:][is_ood].mean() > found.is_noise[260:][~is_ood].mean() + 0.5


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-20])
def test_equal_items_are_answered_equally(value):
    text = world(0)[1]
    found = decide(stream_of(np.full((400, 24), value), text))
    assert np.isfinite(found.id_score).all()
    assert not found.is_noise[OPTIONS.cull_first :].any()
    assert len(np.unique(found.class_index)) == 1


@settings(max_examples=20, deadline=None)
@given(distinct=st.integers(1, 4), seed=st.integers(0, 99))
def test_few_distinct_images(distinct, seed):
    rng = np.random.default_rng(seed)
    shown = rng.normal(size=(distinct, 24))[rng.integers(distinct, size=300)]
    found = decide(stream_of(shown, world(0)[1]))
    assert np.isfinite(found.id_score).all()
    assert np.abs(found.id_score).max() < 100  # no view is made of rounding


def test_zero_features_among_others():
    features, text, _ = world(0)
    features = features.copy()
    features[::7] = 0
    assert np.isfinite(decide(stream_of(features, text)).id_score).all()


@pytest.mark.parametrize("count", [0, 1, 64, 129, 200])
@pytest.mark.parametrize("all_injected", [False, True])
def test_short_streams(count, all_injected):
    features, text, _ = world(0)
    injected = np.full(count, all_injected)
    found = decide(stream_of(features[:count], text, injected=injected))
    assert len(found.is_noise) == count
    assert np.isfinite(found.id_score).all()
    if all_injected:
        assert found.is_noise.all()


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 99))
def test_turning_the_space_changes_no_decision(seed):
    """Only angles count: a rotation and another norm of the features leave everything as it is."""
    features, text, _ = world(6)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(24, 24)))[0]
    a, b = decide(stream_of(features, text)), decide(stream_of(3 * features @ turn, text @ turn))
    clear = np.abs(a.id_score - 1 + np.nan_to_num(a.detector_threshold)) > 1e-3
    assert (a.is_noise == b.is_noise)[clear].all()
    np.testing.assert_allclose(a.id_score, b.id_score, atol=5e-3)


# --- the parts


def test_detail_of_zero_shot():
    features, text, _ = world(0)
    detail = zero_shot_detail(features, text, 30.0)
    logits = (30 * unit(features) @ text.T).astype(float)
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    np.testing.assert_allclose(detail.entropy, -(p * np.log(p)).sum(1) / np.log(12), atol=1e-5)
    np.testing.assert_allclose(detail.top_logits, -np.sort(-logits, axis=1)[:, :5], rtol=1e-5)
    np.testing.assert_array_equal(detail.top_classes, np.argsort(-logits, axis=1)[:, :5])
    np.testing.assert_array_equal(
        detail.top_classes[:, 0], zero_shot(features, text, 30.0).class_index
    )


def test_detail_of_one_class():
    detail = zero_shot_detail(np.ones((3, 2)), np.array([[1, 0]], np.float32), 10.0)
    np.testing.assert_array_equal(detail.entropy, 0)
    np.testing.assert_allclose(detail.top_logits[:, 0], 10 / np.sqrt(2), rtol=1e-6)


def test_otsu_by_hand():
    # 0, 0, 1 and 4, 5: the sides have squares of 2 / 3 and 1 / 2 around their means, all 22.
    split, share = otsu(np.array([4.0, 0.0, 5.0, 1.0, 0.0]))
    assert (split, share) == (2.5, pytest.approx(1 - (2 / 3 + 1 / 2) / 22))
    assert otsu(np.array([0.0, 3, 0, 3]))[1] == pytest.approx(1)
    gaussian, uniform = np.random.default_rng(0).normal(size=10**5), np.linspace(0, 1, 10**4)
    assert otsu(gaussian)[1] == pytest.approx(2 / np.pi, abs=0.01)
    assert otsu(uniform)[1] == pytest.approx(0.75, abs=0.01)
    assert otsu(np.ones(9))[1] == 0


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=40), st.floats(0.1, 10), st.floats(-9, 9)
)
def test_otsus_share_is_a_share_whatever_the_scale(values, scale, shift):
    scores = np.array(values)
    share = otsu(scores)[1]
    assert -1e-9 <= share <= 1 + 1e-9
    if scores.std() > 1e-3:
        assert otsu(scale * scores + shift)[1] == pytest.approx(share, abs=1e-6)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=30), st.floats(0, 1))
def test_quantile_is_numpys(values, share):
    found = _quantile(np.sort(values), share)
    assert found == pytest.approx(np.quantile(values, share), abs=1e-9)


def test_class_penalty_by_hand():
    # Softmax mass of 336 and 64 with 64 spread evenly: pi = 46 / 58, 12 / 58.
    learned = Sums(stream_of(np.eye(2), np.eye(2)).pool, OPTIONS)
    learned.mass = np.array([336.0, 64.0])
    log = np.log(np.array([368, 96]) * 2 / 464)
    spread = (368 * log[0] ** 2 + 96 * log[1] ** 2) / 464
    np.testing.assert_allclose(learned._penalty(), 0.09 / spread * log)
    learned.mass = np.array([9.0, 9.0])
    np.testing.assert_allclose(learned._penalty(), 0, atol=1e-12)
