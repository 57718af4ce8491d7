"""What is learned from people's answers: the rule by hand, and a detector that has it."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import refused
from small_detectors import DIM, SMALL, assert_same, detector, world

from zsntta_cli import Detector
from zsntta_cli.detection.learning import Labels, fitted
from zsntta_cli.errors import SettingsError

TEXT, FEATURES, LABELS = world()
NOISE = LABELS < 0


def auroc(noise, score):
    above = score[noise][:, None] > score[~noise]
    return (above + 0.5 * (score[noise][:, None] == score[~noise])).mean()


def test_answers_of_one_kind_move_the_threshold_and_leave_the_order():
    """One "clean" at margin 0.5: the constant a, at the least of 2.5 a² + log(1 + exp(a + 0.5 b)).

    One margin has no deviation, so it is its own unit; its weight is held at 1 or above.
    """
    labels = Labels.of(np.eye(2, dtype=np.float32)[:1], np.array([False]))
    rule = fitted(labels, np.array([0.5]), np.empty((0, 2), np.float32), np.empty(0))
    constant, margin, ratio = rule.weights
    assert (margin, ratio) == (pytest.approx(1, abs=1e-6), 0)
    assert 5 * constant == pytest.approx(-1 / (1 + math.exp(-(constant + 0.5))), abs=1e-6)
    odds = rule.log_odds(np.zeros((3, 2), np.float32), np.array([-1, 0, 2.0]))
    np.testing.assert_allclose(odds, constant + np.array([-1, 0, 2]), atol=1e-6)


def test_the_ratio_is_of_mean_similarities():
    """Noise lies at (1, 0), clean at (0, 1): of a third image there the ratio is worked by hand."""
    rows = np.array([[1, 0], [0, 1]], np.float32).repeat(12, 0)
    rows = rows + np.linspace(0, 1e-3, 24, dtype=np.float32)[:, None]  # no two alike
    labels = Labels.of(rows, np.arange(24) < 12)
    seen = (rows[12:] + np.float32(0.01)).repeat(10, 0)
    rule = fitted(labels, np.zeros(24), seen, np.zeros(120))
    assert len(rule.usual) == 36
    assert rule.weights[2] > 1, "it tells the two apart, with certainty"
    far, near = math.exp(-10), 1.0  # exp(10 (cosine - 1)) of the other kind and of one's own
    average = (far + near) / 2
    ratio = math.log((12 * near + average) / 13) - math.log((48 * far + average) / 49)
    odds = rule.log_odds(np.array([[1, 0]], np.float32), np.zeros(1))
    expected = rule.weights[0] + rule.weights[2] * (ratio - rule.centre) / rule.scales[1]
    assert odds[0] == pytest.approx(expected, rel=5e-3)


@settings(max_examples=10)
@given(st.permutations(range(12)), st.integers(1, 11))
def test_the_order_of_answers_does_not_matter_and_the_last_of_an_image_counts(order, cut):
    order = np.array(order)
    one, other = detector(), detector()
    for each in (one, other):
        each.update(FEATURES)
    one.feedback(FEATURES[:12], NOISE[:12])
    other.feedback(FEATURES[:6], ~NOISE[:6])
    for some in (order[:cut], order[cut:]):
        other.feedback(FEATURES[some], NOISE[some])
    assert_same(one.predict(FEATURES), other.predict(FEATURES))
    assert one.labelled == other.labelled == 12


def test_noise_that_a_person_saw_is_evidence():
    """Above the threshold is noise then, and unsure nothing; with "clean" alone it stays unsure."""
    text, features, labels = world(spread=4.0, share=0.1)
    noise = labels < 0
    online = Detector(text, 20.0, **SMALL["cull"])
    assert online.decide_all(features).unsure.any()
    clean = copy.deepcopy(online)
    clean.feedback(features[~noise][:3], np.zeros(3, bool))
    assert clean.decide_all(features).unsure.any()
    online.feedback(features[noise][:3], np.ones(3, bool))
    verdicts = online.decide_all(features)
    assert verdicts.noise.any()
    assert not verdicts.unsure.any()
    np.testing.assert_array_equal(verdicts.noise, verdicts.score > 0)
    np.testing.assert_array_equal(verdicts.threshold, 0)
    online.decide_all(features[20:], learn=True)
    assert (online.labelled, online.seen) == (3, len(features) - 20)
    assert not online.predict(features).threshold.any(), "by the answers still"


@pytest.mark.parametrize(("spread", "share", "gain"), [(2.0, 0.25, -0.01), (4.0, 0.05, 0.01)])
def test_the_rest_is_ranked_no_worse_and_better_where_it_is_hard(spread, share, gain):
    """Images that nobody labelled, once the 20 most suspicious and 20 doubtful ones are."""
    text, features, labels = world(0, 3, 600, spread, share)
    noise, online = labels < 0, Detector(text, 20.0)
    before = online.decide_all(features).margin
    labelled = np.concatenate([np.argsort(-before)[:20], np.argsort(abs(before))[:20]])
    online.feedback(features[labelled], noise[labelled])
    after, rest = online.decide_all(features).margin, np.setdiff1d(np.arange(600), labelled)
    assert auroc(noise[rest], after[rest]) - auroc(noise[rest], before[rest]) > gain


@pytest.mark.parametrize("answer", ["no", "Cat", "", 0, 1.0, None, ["cat"]])
def test_answers_are_true_false_or_a_class(answer):
    online = detector()
    wanted = "must be True, False or one of the classes: cat, dog, a horse"
    with refused(f"noise[1] is {answer!r}, {wanted}.", error=SettingsError):
        online.feedback(FEATURES[:2], [True, answer])
    for noise in ([True], "yes"):
        with refused("1 answer, must have one for each of the 3", error=SettingsError):
            online.feedback(FEATURES[:3], noise)
    assert online.labelled == 0
    online.feedback(np.empty((0, DIM)), [])
    assert_same(online.decide_all(FEATURES), detector().decide_all(FEATURES))
    by_truth = detector()
    online.feedback(FEATURES[:3], ["cat", np.True_, "a horse"])
    by_truth.feedback(FEATURES[:3], np.array([False, True, False]))
    assert_same(online.predict(FEATURES), by_truth.predict(FEATURES))
