"""What is learned from people's answers: the rule by hand, and a detector that has it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zsntta_cli import OnlineDetector
from zsntta_cli.detection.learning import LabelledImages, Learner, learned, usual_of
from zsntta_cli.errors import SettingsError

DIM, CLASSES = 16, 3
SMALL = {
    "zs-clip": {"queue": 64},
    "adand": {"queue": 64, "update_every": 16, "warmup": 4},
    "ridge": {"queue": 64, "ridge_first": 16, "ridge_ring": 64},
}


def world(count=300, seed=0, spread=1.5, share=0.25):
    """Text, features of a folder, and which of them are noise: a cluster of its own."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(CLASSES + 1, DIM))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    noise = rng.random(count) < share
    labels = np.where(noise, CLASSES, rng.integers(CLASSES, size=count))
    features = 10 * centres[labels] + spread * rng.normal(size=(count, DIM))
    return centres[:CLASSES].astype(np.float32), features.astype(np.float32), noise


TEXT, FEATURES, NOISE = world()


def detector(method="ridge"):
    return OnlineDetector(TEXT, 20.0, method, **SMALL[method])


def assert_same(one, other):
    for name in ("class_index", "noise", "unsure", "score", "threshold", "adapted"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def auroc(noise, score):
    above = score[noise][:, None] > score[~noise]
    return (above + 0.5 * (score[noise][:, None] == score[~noise])).mean()


# --- the rule


def test_answers_of_one_kind_move_the_threshold_and_leave_the_order():
    """One "clean" at margin 0.5: the constant a, at the least of 2.5 a² + log(1 + exp(a + 0.5 b)).

    One margin has no deviation, so it is its own unit; its weight is held at 1 or above.
    """
    images = LabelledImages.none(2).and_of(np.eye(2, dtype=np.float32)[:1], np.array([False]))
    rule = learned(images, np.array([0.5]), np.empty((0, 2), np.float32))
    constant, margin, ratio = rule.weights
    assert (margin, ratio) == (pytest.approx(1, abs=1e-6), 0)
    assert 5 * constant == pytest.approx(-1 / (1 + math.exp(-(constant + 0.5))), abs=1e-6)
    odds = rule.log_odds(np.zeros((3, 2), np.float32), np.array([-1, 0, 2.0]))
    np.testing.assert_allclose(odds, constant + np.array([-1, 0, 2]), atol=1e-6)


def test_the_ratio_is_of_mean_similarities():
    """Noise lies at (1, 0), clean at (0, 1): of a third image there the ratio is worked by hand."""
    rows = np.array([[1, 0], [0, 1]], np.float32).repeat(12, 0)
    rows = rows + np.linspace(0, 1e-3, 24, dtype=np.float32)[:, None]  # no two alike
    images = LabelledImages.none(2).and_of(rows, np.arange(24) < 12)
    rule = learned(images, np.zeros(24), rows[12:] + np.float32(0.01))
    assert rule.weights[2] > 1, "it tells the two apart, with certainty"
    far, near = math.exp(-10), 1.0  # exp(10 (cosine - 1)) of the other kind and of one's own
    average = (far + near) / 2
    ratio = math.log((12 * near + average) / 13) - math.log((24 * far + average) / 25)
    odds = rule.log_odds(np.array([[1, 0]], np.float32), np.zeros(1))
    expected = rule.weights[0] + rule.weights[2] * (ratio - rule.centre) / rule.scales[1]
    assert odds[0] == pytest.approx(expected, rel=2e-3)


def test_what_is_usual_is_the_least_suspicious_third_without_what_was_labelled():
    features = np.eye(10, dtype=np.float32)
    labelled = LabelledImages.none(10).and_of(features[[4]], np.array([True]))
    margins = np.array([3, -1, 5, 2, -9, 0, 1, 7, -4, 8.0])  # the least: 4, 8, 1
    np.testing.assert_array_equal(usual_of(features, margins, labelled), features[[8, 1]])
    many = np.random.default_rng(0).normal(size=(4000, 10)).astype(np.float32)
    assert len(usual_of(many, np.arange(4000.0), LabelledImages.none(10))) <= 512


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(12)), st.integers(1, 11))
def test_the_order_of_answers_does_not_matter(order, cut):
    order = np.array(order)
    one, other = detector(), detector()
    one.update(FEATURES)
    other.update(FEATURES)
    one.feedback(FEATURES[:12], NOISE[:12])
    for some in (order[:cut], order[cut:]):
        other.feedback(FEATURES[some], NOISE[some])
    assert_same(one.predict(FEATURES), other.predict(FEATURES))
    assert one.labelled == other.labelled == 12


def test_of_the_same_image_the_last_answer_counts():
    one, other = detector(), detector()
    one.feedback(FEATURES[:6], ~NOISE[:6])
    one.feedback(FEATURES[:6], NOISE[:6])
    other.feedback(FEATURES[:6], NOISE[:6])
    assert one.labelled == 6
    assert_same(one.predict(FEATURES), other.predict(FEATURES))


# --- the detector


@pytest.mark.parametrize("method", SMALL)
def test_feedback_of_nothing_changes_nothing(method):
    one, other = detector(method), detector(method)
    for each in (one, other):
        each.update(FEATURES[:200])
    one.feedback(np.empty((0, DIM)), np.empty(0, bool))
    assert_same(one.predict(FEATURES), other.predict(FEATURES))
    assert_same(one.decide_all(FEATURES), other.decide_all(FEATURES))
    assert_same(one.update(FEATURES[200:]), other.update(FEATURES[200:]))


@pytest.mark.parametrize("method", SMALL)
def test_pieces_change_no_verdict(method):
    whole, pieces = detector(method), detector(method)
    for each in (whole, pieces):
        each.update(FEATURES[:30])
        each.feedback(FEATURES[:30], NOISE[:30])
    verdicts = whole.update(FEATURES[30:])
    cuts = [30, 31, 64, 100, 129, 200, 300]
    parts = [pieces.update(FEATURES[a:b]) for a, b in pairwise(cuts)]
    np.testing.assert_allclose(
        np.concatenate([part.score for part in parts]), verdicts.score, atol=1e-5
    )
    np.testing.assert_array_equal(np.concatenate([part.noise for part in parts]), verdicts.noise)


@pytest.mark.parametrize("method", SMALL)
def test_what_was_learned_is_kept(tmp_path, method):
    online = detector(method)
    online.update(FEATURES[:100])
    online.feedback(FEATURES[:40], NOISE[:40])
    online.save(tmp_path / "state.h5")
    loaded, resumed = OnlineDetector.load(tmp_path / "state.h5"), detector(method)
    resumed.resume(tmp_path / "state.h5")
    for other in (loaded, resumed, online.copy()):
        assert other.labelled == 40
        assert_same(other.predict(FEATURES), online.predict(FEATURES))
        assert_same(other.decide_all(FEATURES), online.decide_all(FEATURES))
    assert_same(loaded.update(FEATURES[100:]), online.update(FEATURES[100:]))
    assert_same(loaded.predict(FEATURES), online.predict(FEATURES))
    online.reset()
    assert online.labelled == 0
    assert_same(online.predict(FEATURES), detector(method).predict(FEATURES))


def test_states_of_versions_that_did_not_learn_are_read():
    online, other = detector(), detector()
    online.update(FEATURES[:100])
    older = {k: v for k, v in online.state().items() if not k.startswith("people.")}
    other.restore(older)
    assert_same(other.update(FEATURES[100:]), online.update(FEATURES[100:]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("people.rule.weights", np.ones(2)),
        ("people.rule.weights", np.full(3, np.nan)),
        ("people.answers.waiting.noise", np.zeros(3, bool)),
        ("people.recent.waiting.features", np.zeros((2, DIM), np.float16)),
        ("people.usual.waiting.features", np.zeros((2, DIM + 1), np.float32)),
        ("people.more", 1),
    ],
)
def test_a_state_with_other_answers_is_refused(name, value):
    online = detector()
    online.update(FEATURES[:50])
    online.feedback(FEATURES[:10], NOISE[:10])
    before = online.predict(FEATURES)
    with pytest.raises(SettingsError, match="not the state of such a detector"):
        online.restore({**online.state(), name: value})
    assert_same(online.predict(FEATURES), before)


def test_answers_are_one_an_image_and_true_or_false():
    online = detector()
    for noise, said in (
        ([True], "1 answers, must have one for each of the 3"), ("yes", "1 answers, must have one"),
        (np.ones(3), r"noise\[0\] is 1.0, must be True, False or one of the classes"),
        ([True, False, "no"], r"noise\[2\] is 'no', must be True"),
        (np.zeros((3, 1), bool), r"noise\[0\] is array"),
    ):  # fmt: skip
        with pytest.raises(SettingsError, match=said):
            online.feedback(FEATURES[:3], noise)
    assert online.labelled == 0


def test_noise_that_a_person_saw_is_evidence():
    """Above the threshold is noise then, and unsure nothing; with "clean" alone it stays unsure."""
    text, features, noise = world(spread=4.0, share=0.1)
    online = OnlineDetector(text, 20.0, **SMALL["ridge"])
    assert online.decide_all(features).unsure.any()
    clean = online.copy()
    clean.feedback(features[~noise][:3], np.zeros(3, bool))
    assert clean.decide_all(features).unsure.any()
    online.feedback(features[noise][:3], np.ones(3, bool))
    verdicts = online.decide_all(features)
    assert verdicts.noise.any()
    assert not verdicts.unsure.any()
    np.testing.assert_array_equal(verdicts.noise, verdicts.score > 0)
    np.testing.assert_array_equal(verdicts.threshold, 0)


@pytest.mark.parametrize("share", [0.05, 0.25])
@pytest.mark.parametrize("spread", [2.0, 4.0])
def test_the_rest_is_ranked_no_worse(share, spread):
    """Images that nobody labelled: never a point lower, and higher where it is hard."""
    gains = []
    for seed in range(2):
        text, features, noise = world(600, seed, spread, share)
        online = OnlineDetector(text, 20.0)
        before = online.decide_all(features).margin
        order = np.argsort(-before)
        for count in (10, 40):
            labelled = np.concatenate([order[: count // 2], np.argsort(abs(before))[: count // 2]])
            rest = np.setdiff1d(np.arange(600), labelled)
            if not noise[rest].any():
                continue
            taught = online.copy()
            taught.feedback(features[labelled], noise[labelled])
            after = taught.decide_all(features).margin
            gains.append(auroc(noise[rest], after[rest]) - auroc(noise[rest], before[rest]))
    assert min(gains) > -0.01
    assert (spread, share) != (4, 0.05) or max(gains) > 0.01


def test_a_ring_remembers_the_last_images():
    learner = Learner(2)
    rows = np.arange(1400, dtype=np.float32).reshape(-1, 2)
    learner.see(rows[:300])
    learner.see(rows[300:])
    recent = learner.state()["recent.waiting.features"]
    np.testing.assert_array_equal(np.sort(recent[:, 0]), rows[-512:, 0])
