"""Cull against its item-by-item reference, and what must hold for any stream."""

from unittest import mock

import numpy as np
import pytest
from reference.cull import cull as reference
from streams import decide, of_features

from zsntta_cli.methods.detectors import cull
from zsntta_cli.methods.detectors.cull import Cull, class_penalty, otsu
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings

RULE = ThresholdSettings()


def world(seed, count=700, ratio=0.25, classes=12, dim=24, spread=None, is_sorted=False):
    """Images around their class's text, noise around a few other points; labels, -1 for noise."""
    rng = np.random.default_rng(seed)
    text = unit(rng.normal(size=(classes, dim)) + 1)
    elsewhere = unit(rng.normal(size=(3, dim)) + 1)
    labels = rng.integers(classes, size=count)
    labels = np.sort(labels) if is_sorted else labels
    labels[rng.random(count) < ratio] = -1
    centers = np.where(labels[:, None] < 0, elsewhere[rng.integers(3, size=count)], text[labels])
    if spread is None:  # classes are hard to a different degree, images too
        spread = rng.uniform(0.08, 0.22, count) + rng.uniform(0, 0.08, classes)[labels]
        spread = spread[:, None] * np.sqrt(24 / dim)
    features = 10 * (centers + spread * rng.normal(size=(count, dim)))
    return features, text, labels


def any_text(dim=24):
    """The mean of the unit features of texts on anything."""
    return unit(np.random.default_rng(9).normal(size=(300, dim)) + 1).mean(0).astype(np.float32)


def run(data, **values):
    return decide("cull", data, RULE, **values)[0]


@pytest.mark.parametrize(
    ("seed", "ratio", "generic", "values"),
    [
        (0, 0.25, False, {}),
        (1, 0.0, False, {}),
        (2, 0.03, False, {"cull_ring": 300, "cull_tail": 2, "cull_tail_deviations": 2}),
        (3, 0.5, False, {"cull_first": 40, "cull_prior": 1.0}),
        (4, 0.95, True, {"cull_low": 1.0}),
        (5, 0.02, True, {"cull_low": 5.0, "cull_high": 7.0, "cull_many": 0.01}),
    ],
)
def test_agrees_with_the_reference(seed, ratio, generic, values):
    features, text, _ = world(seed, count=1200, ratio=ratio)
    data = of_features(features, text, 30.0, generic=any_text() if generic else None)
    found, options = decide("cull", data, RULE, **values)
    classes, is_noise, scores, thresholds, evidence, levels = reference(data, options, RULE)
    np.testing.assert_allclose(1 - found.id_score, scores, atol=2e-3)
    np.testing.assert_allclose(found.detector_threshold, thresholds, atol=2e-3)
    if generic:
        np.testing.assert_allclose(found.evidence, evidence, atol=1e-4)
        assert 0 < (found.evidence < found.level).mean() < 1
    np.testing.assert_array_equal(found.level, levels)
    bound = np.where(np.isnan(thresholds), found.zero_shot_threshold, thresholds)
    clear = ~(np.abs(scores - bound) < 4e-3)  # rounding may turn a decision at the threshold
    assert clear.mean() > 0.97
    np.testing.assert_array_equal(found.is_noise[clear], is_noise[clear])
    assert (found.class_index == classes).mean() > 0.998
    assert (found.class_index != data.class_index).any()  # the class prior does something


def test_injected_items_are_noise_and_teach_nothing():
    features, text, _ = world(4, count=900)
    injected = np.random.default_rng(0).random(900) < 0.2
    found = run(of_features(features, text, 30.0, injected))
    alone = run(of_features(features[~injected], text, 30.0))
    assert found.is_noise[injected].all()
    np.testing.assert_array_equal(found.is_noise[~injected], alone.is_noise)
    np.testing.assert_array_equal(found.class_index[~injected], alone.class_index)


# --- the level


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_an_image_that_fits_no_class_is_noise_whatever_the_stream_holds(ratio):
    features, text, labels = world(8, count=800, ratio=ratio, classes=5, dim=64)
    data = of_features(features, text, 30.0, generic=any_text(64))
    found = run(data, cull_low=2.5)
    is_ood, by_itself = labels < 0, found.evidence < found.level
    assert not is_ood.any() or by_itself[is_ood].mean() > 0.9
    assert is_ood.all() or by_itself[~is_ood].mean() < 0.1
    assert found.is_noise[by_itself].all()
    cautious = run(data, cull_low=2.5, cautious=True)
    np.testing.assert_array_equal(cautious.is_noise, by_itself)
    np.testing.assert_array_equal(cautious.class_index, found.class_index)


def test_evidence_is_how_much_likelier_one_of_the_classes_is_by_hand():
    # Logits 30 x (0.8, 0.6) less 30 x 0.5 x 0.8: the mean of exp(12) and exp(6).
    generic = np.array([0.5, 0.0], np.float32)
    found = run(of_features([[8.0, 6.0]], np.eye(2), 30.0, generic=generic), cull_low=1.0)
    assert found.evidence[0] == pytest.approx(np.log((np.exp(12) + np.exp(6)) / 2), abs=1e-4)


def level(classes=3, scale=100.0, low=None, high=None, **texts):
    """The levels of classes at right angles, and what stands for any text."""
    data = of_features(np.zeros((0, 3)), np.eye(classes, 3), scale, **texts)
    found = Cull(data, Cull.Settings(cull_low=low, cull_high=high), RULE)
    return found.low, found.high, found.any_text


def test_where_a_level_is_known_and_what_any_text_is():
    generic = np.full(3, 0.2, np.float32)
    assert level()[2] is level(generic=generic)[2] is None
    assert level(generic=generic, is_level_known=True) == (2, 3, generic)
    assert level(low=0.5, generic=generic) == (0.5, 1.5, generic)
    assert level(low=3, high=2, generic=generic)[:2] == (3, 3), "the upper level is none lower"
    # Three classes at right angles: 100 (1 - 0) is far apart, 29 is not; one class is never.
    np.testing.assert_allclose(level(is_level_known=True)[2], 1 / 3)
    assert np.isnan(level(scale=29.0, is_level_known=True)[:2]).all()
    assert np.isnan(level(1, is_level_known=True)[:2]).all()


def test_where_equation_6_is_left_out_it_is_said():
    note = Cull.Settings().note
    assert note(True, True) == Cull.Settings(cull_low=1).note(True, False) == ""
    assert "no generic text" in note(False, True)
    assert "cull-low" in note(True, False)


# --- streams in order


def in_order(seed, count=700, is_sorted=True):
    """Images of classes that are confused, class after class with noise among them; labels."""
    features, text, labels = world(seed, count, spread=0.3, is_sorted=is_sorted)
    return of_features(features, text, 30.0), labels


def without_order(data):
    """The decisions of a detector that looks for no order."""
    with mock.patch.object(cull.Order, "learn"):
        return run(data)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_classes_are_named_better_in_order_and_as_before_in_none(seed):
    data, labels = in_order(seed, count=1200)
    without, found = without_order(data), run(data)
    right, better = ((d.class_index == labels)[labels >= 0].mean() for d in (without, found))
    assert better > right + 0.05
    np.testing.assert_array_equal(without.is_noise, found.is_noise)
    np.testing.assert_array_equal(without.id_score, found.id_score)
    data, _ = in_order(seed, is_sorted=False)
    np.testing.assert_array_equal(run(data).class_index, without_order(data).class_index)


def test_without_learning_each_image_is_named_alone_in_the_order_so_far():
    data, _ = in_order(1)
    online = Cull(data, Cull.Settings(), RULE)
    online.push(data.part(slice(0, 500)))
    rest = [data.part(slice(i, i + 1)) for i in range(500, 700)]
    alone = [online.push(item, learn=False).class_index[0] for item in rest]
    rest = data.part(slice(500, 700))
    np.testing.assert_array_equal(online.push(rest, learn=False).class_index, alone)
    pushed = online.push(rest).class_index
    assert pushed[0] == alone[0]
    assert (pushed != alone).any()


# --- the parts


def test_otsu_by_hand():
    # 0, 0, 1 and 4, 5: the sides have squares of 2 / 3 and 1 / 2 around their means, all 22.
    split, share = otsu(np.array([4.0, 0.0, 5.0, 1.0, 0.0]))
    assert (split, share) == (2.5, pytest.approx(1 - (2 / 3 + 1 / 2) / 22))
    assert otsu(np.random.default_rng(0).normal(size=10**5))[1] == pytest.approx(
        2 / np.pi, abs=0.01
    )
    assert otsu(np.linspace(0, 1, 10**4))[1] == pytest.approx(0.75, abs=0.01)
    assert otsu(np.ones(9))[1] == 0


def test_class_penalty_by_hand():
    # Softmax mass of 368 and 96: pi = 46 / 58, 12 / 58.
    log = np.log(np.array([368, 96]) * 2 / 464)
    spread = (368 * log[0] ** 2 + 96 * log[1] ** 2) / 464
    np.testing.assert_allclose(class_penalty(np.array([368.0, 96.0]), 0.3), 0.09 / spread * log)
    np.testing.assert_allclose(class_penalty(np.full(2, 9.0), 0.3), 0, atol=1e-12)
