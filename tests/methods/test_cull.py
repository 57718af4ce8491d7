"""Cull against its item-by-item reference, and what must hold for any stream."""

import pickle
from functools import cache

import numpy as np
import pytest
from learned import state_of
from reference.cull import cull as reference
from streams import of_features

from zsntta_cli import Detector
from zsntta_cli.methods.detectors import cull
from zsntta_cli.methods.detectors.cull import Cull, class_penalty, groups, otsu, rare
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings

OPTIONS, LEVEL = Cull.Settings(), {"cull_low": 1.0}


def stream_of(features, text, injected=None, generic=None, known=False):
    generic = None if generic is None else np.asarray(generic, np.float32)
    return of_features(features, text, 30.0, injected, generic=generic, is_level_known=known)


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


@cache
def any_text(dim=24):
    """The mean of the unit features of texts on anything."""
    return unit(np.random.default_rng(9).normal(size=(300, dim)) + 1).mean(0).astype(np.float32)


def decide(data, options=OPTIONS):
    return cull.Cull(data, options, ThresholdSettings()).push(data)


# --- the reference


@pytest.mark.parametrize(
    ("seed", "ratio", "generic", "options"),
    [
        (0, 0.25, False, OPTIONS),
        (1, 0.0, False, OPTIONS),
        (2, 0.03, False, Cull.Settings(cull_ring=300, cull_tail=2, cull_tail_deviations=2)),
        (3, 0.5, False, Cull.Settings(cull_first=40, cull_prior=1.0)),
        (0, 0.25, True, OPTIONS),
        (4, 0.95, True, Cull.Settings(**LEVEL)),
        (5, 0.02, True, Cull.Settings(cull_low=5.0, cull_high=7.0, cull_many=0.01)),
    ],
)
def test_agrees_with_the_reference(seed, ratio, generic, options):
    features, text, _ = world(seed, count=1200, ratio=ratio)
    injected = np.arange(1200) % 9 == 8
    data = stream_of(features, text, injected, any_text() if generic else None)
    found = decide(data, options)
    expected = reference(data, options, ThresholdSettings())
    test = ~injected  # the package gives injected noise its zero-shot score
    found, expected = found.part(test), [column[test] for column in expected]
    classes, is_noise, scores, thresholds, evidence, levels = expected
    np.testing.assert_allclose(1 - found.id_score, scores, atol=2e-3)
    np.testing.assert_allclose(found.detector_threshold, thresholds, atol=2e-3)
    if options.cull_low is None:
        assert np.isnan(found.evidence).all()
        assert np.isnan(found.level).all()
    else:
        np.testing.assert_allclose(found.evidence, evidence, atol=1e-4)
        np.testing.assert_array_equal(found.level, levels)
        assert 0 < (found.evidence < found.level).mean() < 1
    bound = np.where(np.isnan(thresholds), found.zero_shot_threshold, thresholds)
    clear = ~(np.abs(scores - bound) < 4e-3)  # rounding may turn a decision at the threshold
    assert clear.mean() > 0.97
    np.testing.assert_array_equal(found.is_noise[clear], is_noise[clear])
    assert (found.class_index == classes).mean() > 0.998  # in no order: of step 7 alone
    assert (found.class_index != data.class_index[test]).any()  # the class prior does something


# --- the level


@pytest.mark.parametrize("ratio", [0.0, 0.5, 0.95, 1.0])
def test_an_image_that_fits_no_class_is_noise_whatever_the_stream_holds(ratio):
    features, text, labels = world(8, count=800, ratio=ratio, classes=5, dim=64)
    data = stream_of(features, text, generic=any_text(64))
    found = decide(data, Cull.Settings(cull_low=2.5))
    is_ood, by_itself = labels < 0, found.evidence < found.level
    assert not is_ood.any() or by_itself[is_ood].mean() > 0.9
    assert is_ood.all() or by_itself[~is_ood].mean() < 0.1
    assert found.is_noise[by_itself].all()
    cautious = decide(data, Cull.Settings(cull_low=2.5, cautious=True))
    np.testing.assert_array_equal(cautious.is_noise, by_itself)
    np.testing.assert_array_equal(cautious.class_index, found.class_index)


def test_evidence_is_how_much_likelier_one_of_the_classes_is_by_hand():
    # Logits 30 x (0.8, 0.6) less 30 x 0.5 x 0.8: the mean of exp(12) and exp(6).
    text, generic = np.eye(2, dtype=np.float32), np.array([0.5, 0.0])
    data = stream_of([[8.0, 6.0]], text, generic=generic)
    found = decide(data, Cull.Settings(**LEVEL))
    assert found.evidence[0] == pytest.approx(np.log((np.exp(12) + np.exp(6)) / 2), abs=1e-4)


def level(text, options=OPTIONS, scale=100.0, **pool):
    data = of_features(np.zeros((0, text.shape[1])), text, scale, **pool)
    return cull.Cull(data, options, ThresholdSettings())


def test_where_a_level_is_known_and_what_any_text_is():
    text, generic = np.eye(3), np.full(3, 0.2, np.float32)
    assert level(text).any_text is level(text, generic=generic).any_text is None
    found = level(text, generic=generic, is_level_known=True)
    assert (found.low, found.high) == (2, 3)
    assert found.any_text is found.generic is generic
    found = level(text, Cull.Settings(cull_low=0.5), generic=generic)
    assert (found.low, found.high) == (0.5, 1.5)
    found = level(text, Cull.Settings(cull_low=3, cull_high=2), generic=generic)
    assert (found.low, found.high) == (3, 3), "the upper level is none that is lower"
    # Three classes at right angles: 100 (1 - 0) is far apart, 29 is not; one class is never.
    own = level(text, is_level_known=True)
    np.testing.assert_allclose(own.any_text, 1 / 3)
    assert own.generic is None
    for alike in (
        level(text, scale=29.0, is_level_known=True),
        level(text[:1], is_level_known=True),
    ):
        assert np.isnan([alike.low, alike.high]).all()


@pytest.mark.parametrize(
    ("settings", "said"),
    [((True, True), ""), ((False, True), "no generic text"), ((True, False), "cull-low")],
)
def test_where_equation_6_is_left_out_it_is_said(settings, said):
    assert said in Cull.Settings().note(*settings)
    assert bool(Cull.Settings().note(*settings)) == bool(said)
    assert not Cull.Settings(cull_low=1).note(True, False)


def test_noise_is_by_its_own_evidence_and_unsure_by_the_others():
    features, text, labels = world(8, count=800, ratio=0.1, classes=5, dim=64)
    detector = Detector(text, 30.0, generic=any_text(64), cull_low=2.5)
    verdicts = detector.decide_all(features)
    np.testing.assert_array_equal(verdicts.noise, verdicts.evidence < verdicts.level)
    np.testing.assert_array_equal(verdicts.unsure, (verdicts.margin > 0) & ~verdicts.noise)
    assert verdicts.noise[labels < 0].mean() > 0.9
    unknown = Detector(text, 30.0).decide_all(features)
    assert not unknown.noise.any()
    assert unknown.unsure.any()
    assert np.isnan(unknown.evidence).all()


def test_where_few_belong_those_that_fit_best_come_last():
    features, text, labels = world(8, count=310, ratio=0.97, classes=5, dim=64)
    detector = Detector(text, 30.0, generic=any_text(64), cull_low=2.5)
    verdicts = detector.decide_all(features)
    assert verdicts.noise[labels < 0].mean() > 0.9
    best = np.argsort(-verdicts.rank)[: (labels >= 0).sum()]
    assert set(best) == set(np.flatnonzero(labels >= 0))
    np.testing.assert_array_equal(np.argsort(verdicts.rank), np.argsort(verdicts.evidence))


# --- online (what holds of every method: test_invariants.py, test_online_methods.py)


def test_state_does_not_grow():
    features, text, _ = world(0, count=6000, dim=8)
    data = stream_of(features, text)
    stepper, sizes = cull.Cull(data, OPTIONS, ThresholdSettings()), []
    for start in range(0, 6000, 500):
        stepper.push(data.part(slice(start, start + 500)))
        stepper.waiting = []  # what is not learned yet
        sizes.append(len(pickle.dumps(state_of(stepper))))
    assert max(sizes[6:]) - min(sizes[6:]) < 64  # digits of counts


def test_injected_items_are_noise_and_teach_nothing():
    features, text, _ = world(4, count=900)
    injected = np.random.default_rng(0).random(900) < 0.2
    found = decide(stream_of(features, text, injected=injected))
    alone = decide(stream_of(features[~injected], text))
    assert found.is_noise[injected].all()
    np.testing.assert_array_equal(found.is_noise[~injected], alone.is_noise)
    np.testing.assert_array_equal(found.class_index[~injected], alone.class_index)


# --- odd streams


# --- the parts


def test_otsu_by_hand():
    # 0, 0, 1 and 4, 5: the sides have squares of 2 / 3 and 1 / 2 around their means, all 22.
    split, share = otsu(np.array([4.0, 0.0, 5.0, 1.0, 0.0]))
    assert (split, share) == (2.5, pytest.approx(1 - (2 / 3 + 1 / 2) / 22))
    assert otsu(np.array([0.0, 3, 0, 3]))[1] == pytest.approx(1)
    gaussian, uniform = np.random.default_rng(0).normal(size=10**5), np.linspace(0, 1, 10**4)
    assert otsu(gaussian)[1] == pytest.approx(2 / np.pi, abs=0.01)
    assert otsu(uniform)[1] == pytest.approx(0.75, abs=0.01)
    assert otsu(np.ones(9))[1] == 0


def test_groups_by_hand():
    many = 10**12
    assert groups(2 / np.pi, many) == groups(0.5, many) == 0
    assert groups(0.751, many) == groups(1.0, 100) == 1
    assert groups((2 / np.pi + 0.75) / 2, many) == pytest.approx(0.5, abs=1e-4)
    assert groups(0.7, 100) == pytest.approx((0.65 - 2 / np.pi) / (0.75 - 2 / np.pi))


def test_a_few_images_far_above_are_rare_and_far_below_they_belong():
    scores = np.clip(np.random.default_rng(0).normal(size=1000), -2.5, 2.5)
    assert rare(scores, 6.0) == 0
    scores[:4] = 8
    assert rare(scores, 6.0) == 1
    assert rare(3 * scores - 5, 6.0) == 1
    assert rare(-scores, 6.0) == 0
    # One among four equal others: skewness 3 / 2, kurtosis 3.25.
    few = np.array([0, 0, 0, 0, 1.0])
    assert rare(few, (3 / 2 + 3.25) / 1.05) == pytest.approx(0.4)
    assert rare(np.ones(9), 6.0) == 0


def test_class_penalty_by_hand():
    # Softmax mass of 368 and 96: pi = 46 / 58, 12 / 58.
    log = np.log(np.array([368, 96]) * 2 / 464)
    spread = (368 * log[0] ** 2 + 96 * log[1] ** 2) / 464
    np.testing.assert_allclose(class_penalty(np.array([368.0, 96.0]), 0.3), 0.09 / spread * log)
    np.testing.assert_allclose(class_penalty(np.full(2, 9.0), 0.3), 0, atol=1e-12)
