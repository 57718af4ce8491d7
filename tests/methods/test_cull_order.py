"""Order in a stream: the test for it against all permutations, and classes in context by cull."""

import copy
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.cull import cull as reference

from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.detectors import cull
from zsntta_cli.methods.detectors.cull import CullSettings
from zsntta_cli.methods.detectors.cull_order import Order, errors_in_order
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings

ON, OFF = CullSettings(), CullSettings(cull_order=False)
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
    pool = Pool.scored(features, text, 30.0)
    return StreamData(pool, np.arange(count), injected), labels


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


@pytest.mark.parametrize("classes", [[], [1], [1] * 50, list(range(50)), [0, 0, 0, 1, 1, 1, 1]])
def test_where_no_order_can_show_there_is_none(classes):
    assert errors_in_order(np.array(classes, np.int32)) < 2


@pytest.mark.parametrize("classes", [2, 24, 1000])
def test_shuffled_classes_are_hardly_ever_called_ordered(classes):
    rng = np.random.default_rng(classes)
    shares = rng.dirichlet(np.ones(classes))
    found = [errors_in_order(rng.choice(classes, 300, p=shares)) for _ in range(200)]
    assert np.mean(np.array(found) > 4) < 0.05
    assert abs(np.mean(found)) < 0.3
    assert np.std(found) < 1.2


def test_shuffled_streams_are_hardly_ever_called_ordered():
    """Nowhere in a stream: 200 orders of the same images, at each of their ten looks."""
    data, _ = stream(count=640, in_order=False)
    named, rng = data.pool.zero_shot.class_index, np.random.default_rng(0)
    logits, alarms = data.pool.detail.top_logits, 0
    for _ in range(200):
        order, last = rng.permutation(640), Order(12, 1024)
        for part in np.split(order, 10):
            classes = data.pool.detail.top_classes[part]
            last.name(logits[part].astype(float), classes, np.ones(64, bool))
            last.learn()
            if last.weights.any():
                alarms += 1
                break
    assert alarms <= 10
    assert errors_in_order(np.sort(named)) > 4


# --- the last classes


def test_shares_by_hand():
    last = Order(4, 8)
    logits = np.log([[0.75, 0.25], [0.5, 0.5]])
    classes = np.array([[2, 0], [1, 2]], np.int32)
    assert last.name(logits, classes, np.array([True, False])).tolist() == [2, 1]
    # Shares of 1/4 each, halved, and half of what the first item is; of the longer ones less.
    new = np.array([0.25, 0, 0.75, 0])
    shares = [keep * 0.25 + (1 - keep) * new for keep in (0.5, 0.9, 0.98)]
    np.testing.assert_allclose(last.shares, shares)
    last.name(logits[1:], classes[1:], np.ones(1, bool))
    assert (last.seen, last.classes[:2].tolist()) == (2, [2, 1])
    expected = [4 * (0.5 * one[1] + 0.5 * one[2]) for one in shares]
    np.testing.assert_allclose(last.gains[:2], [[1, 1, 1], expected])


def test_the_last_classes_turn_a_close_call():
    logits, classes = np.array([[0.3, 0.0]]), np.array([[1, 0]], np.int32)
    for weight, expected in [(0.0, 1), (0.5, 1), (1.0, 0)]:  # log (0.6 / 0.4) = 0.41
        last = Order(2, 8)
        last.shares, last.weights = np.tile([0.6, 0.4], (3, 1)), np.array([weight, 0, 0])
        assert last.name(logits, classes, np.zeros(1, bool))[0] == expected


def test_weights_go_to_the_window_that_foretells():
    rng, last = np.random.default_rng(0), Order(12, 1024)
    last.classes[:500], last.seen = np.arange(500) // 50, 500
    gains = [rng.uniform(0, 2, 500), rng.uniform(2, 9, 500), np.ones(500)]
    last.gains[:500] = np.column_stack(gains)
    last.learn()
    assert last.weights[1] > 0.9
    assert last.weights.sum() < 1
    last.gains[:500] = 0
    last.learn()
    assert last.weights.sum() < 1e-6
    last.classes[:500] = np.arange(500) % 7
    last.learn()
    assert not last.weights.any()


# --- in the detector


@pytest.mark.parametrize(("injected_every", "options"), [(0, ON), (9, ON), (9, OFF)])
def test_agrees_with_the_reference_in_order(injected_every, options):
    data, _ = stream(2, injected_every=injected_every)
    classes = reference(data, options, ThresholdSettings())[0]
    found = decide(data, options).class_index
    assert (found == classes).mean() > 0.99
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


def test_order_that_ends_is_forgotten():
    ordered, _ = stream(3)
    shuffled, _ = stream(3, count=3000, in_order=False)
    stepper = cull.Cull(ordered, CullSettings(cull_ring=512), ThresholdSettings())
    stepper.push(ordered)
    assert stepper.order.weights.sum() > 0.5
    stepper.push(shuffled)
    assert not stepper.order.weights.sum()


@settings(max_examples=10, deadline=None)
@given(now=st.integers(1, 699), seed=st.integers(0, 2), draw=st.integers(0, 99))
def test_the_future_changes_no_class(now, seed, draw):
    data, _ = stream(seed)
    later = data.index.copy()
    later[now:] = np.random.default_rng(draw).permutation(later[now:])
    changed = StreamData(data.pool, later, data.injected)
    np.testing.assert_array_equal(decide(data).class_index[:now], decide(changed).class_index[:now])


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
