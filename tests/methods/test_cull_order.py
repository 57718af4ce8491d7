"""Order in a stream: the test for it against all permutations, and classes in context by cull."""

import copy
from functools import cache

import numpy as np
import pytest
from reference.cull import cull as reference

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors import cull
from zsntta_cli.methods.detectors.cull import Cull
from zsntta_cli.methods.detectors.cull_order import Order, errors_in_order, follow
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings

ON, OFF = Cull.Settings(), Cull.Settings(cull_order=False)
HARD = 0.3  # spread of images around their class's text: classes are confused


@cache
def stream(seed=0, count=700, ratio=0.25, in_order=True, injected_every=0):
    """Images class after class with noise among them, or all shuffled; labels, -1 for noise."""
    rng = np.random.default_rng(seed)
    text = unit(rng.normal(size=(12, 24)) + 1).astype(np.float32)
    elsewhere = unit(rng.normal(size=(3, 24)) + 1)
    labels = rng.integers(12, size=count)
    labels = np.sort(labels) if in_order else labels
    labels[rng.random(count) < ratio] = -1
    centers = np.where(labels[:, None] < 0, elsewhere[rng.integers(3, size=count)], text[labels])
    features = (centers + HARD * rng.normal(size=(count, 24))).astype(np.float32)
    injected = np.zeros(count, bool)
    if injected_every:
        injected[injected_every - 1 :: injected_every] = True
    return StreamData.scored(features, text, 30.0, injected), labels


def decide(data, options=ON):
    return cull.Cull(data, options, ThresholdSettings()).push(data)


def weight(data):
    stepper = cull.Cull(data, ON, ThresholdSettings())
    stepper.push(data)
    return stepper.order.weights.sum()


def accuracy(decisions, labels):
    return (decisions.class_index == labels)[labels >= 0].mean()


# --- the test of order


def test_errors_by_hand():
    # 4 items of each of two classes: of 7 neighbours 3 share a class by chance.
    assert errors_in_order(np.array([0, 0, 0, 0, 1, 1, 1, 1])) == pytest.approx(
        np.sqrt(6) + np.sqrt(7) - np.sqrt(13)
    )
    assert errors_in_order(np.array([0, 1] * 4)) == pytest.approx(1 - np.sqrt(13))


# --- the last classes


def test_shares_by_hand():
    uniform, likely = np.full((3, 4), 0.25), np.array([[0.75, 0.25], [0.5, 0.5]])
    classes = np.array([[2, 0], [1, 2]], np.int32)
    gain, shares = follow(uniform, likely, classes, np.array([True, False]))
    # Shares of 1/4 each, halved, and half of what the first item is; of the longer ones less.
    new = np.array([0.25, 0, 0.75, 0])
    expected = [keep * 0.25 + (1 - keep) * new for keep in (0.5, 0.9, 0.98)]
    np.testing.assert_allclose(shares, expected)
    np.testing.assert_allclose(gain[0], 1)
    np.testing.assert_allclose(gain[1], [(4 * one[1], 4 * one[2]) for one in expected])


def test_the_last_classes_turn_a_close_call():
    logits, classes = np.array([[0.3, 0.0]]), np.array([[1, 0]], np.int32)
    for weight, expected in [(0.0, 1), (0.5, 1), (1.0, 0)]:  # log (0.6 / 0.4) = 0.41
        last = Order(2, 8)
        last.shares, last.weights = np.tile([0.6, 0.4], (3, 1)), np.array([weight, 0, 0])
        assert last.name(logits, classes, np.zeros(1, bool))[0] == expected


def test_weights_go_to_the_window_that_foretells():
    """Runs of three speak for the shortest window, and items in turn for none."""
    logits, rng = np.tile([4.0, 0, 0, 0, 0], (500, 1)), np.random.default_rng(0)
    last = Order(12, 400)

    def weights(first):
        last.learn(logits, (first[:, None] + np.arange(5)) % 12)
        return last.weights

    runs = weights(np.repeat(rng.integers(12, size=168), 3)[:500])
    assert runs.argmax() == 0
    assert 0.3 < runs.sum() < 1
    assert not weights(np.arange(500) % 7).any()


# --- in the detector


@pytest.mark.parametrize(("injected_every", "options"), [(0, ON), (9, ON), (9, OFF)])
def test_agrees_with_the_reference_in_order(injected_every, options):
    data, _ = stream(2, injected_every=injected_every)
    classes = reference(data, options, ThresholdSettings())[0]
    same = decide(data, options).class_index == classes
    assert same[~data.injected].mean() > 0.99
    if options is ON:
        assert (decide(data, OFF).class_index == classes).mean() < 0.95


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_classes_are_named_better_in_order_and_as_before_in_none(seed):
    data, labels = stream(seed, count=1200)
    a, b = decide(data, OFF), decide(data)
    assert accuracy(b, labels) > accuracy(a, labels) + 0.05
    np.testing.assert_array_equal(a.is_noise, b.is_noise)
    np.testing.assert_array_equal(a.id_score, b.id_score)
    data, _ = stream(seed, in_order=False)
    np.testing.assert_array_equal(decide(data).class_index, decide(data, OFF).class_index)
    assert not weight(data)


def test_a_judge_stays_at_its_moment_and_names_each_image_alone():
    data, _ = stream(1)
    stepper = cull.Cull(data, ON, ThresholdSettings())
    stepper.push(data.part(slice(0, 500)))
    judge, rest = copy.deepcopy(stepper), data.part(slice(500, 700))
    before = judge.push(rest, learn=False).class_index
    alone = [judge.push(rest.part(slice(i, i + 1)), learn=False).class_index[0] for i in range(200)]
    np.testing.assert_array_equal(before, alone)
    pushed = stepper.push(rest).class_index
    np.testing.assert_array_equal(judge.push(rest, learn=False).class_index, before)
    assert pushed[0] == before[0]
    assert (pushed != before).any()
