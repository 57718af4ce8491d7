"""OODD: the dictionary by hand, blocks against one item after another."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import oodd as reference
from streams import of_features, of_scores

from zsntta_cli.methods.detectors import oodd
from zsntta_cli.methods.detectors.oodd import OoddSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

A, B, C, D = [1, 0], [0.6, 0.8], [0, 1], [0.8, 0.6]


def noise_scores(data, options):
    """The noise scores (T,), whatever the threshold."""
    return 1 - oodd.OODD(data, options, ThresholdSettings()).push(data).id_score


def random_stream(items, seed, known=0.1, dim=6, steps=None):
    rng = np.random.default_rng(seed)
    u = rng.random(items) if steps is None else rng.integers(0, steps, items) / steps
    features = 3 * rng.normal(size=(items, dim)) + 2
    return of_scores(features, u, rng.random(items) < known)


def test_by_hand():
    # Two entries, the nearest counts. d has less u than both: it does not enter.
    options = OoddSettings(oodd_items=2, oodd_neighbour=1)
    scores = noise_scores(of_scores([A, B, C, D], [0.9, 0.5, 0.7, 0.1]), options)
    np.testing.assert_allclose(scores, [0.9, 1.5 / 2, 1.7 / 2, (0.1 + 0.8) / 2], rtol=1e-6)


def test_itself_is_the_first_neighbour_and_the_second_counts():
    # c: itself, b at 0.8. d stays out: b at 0.96, a at 0.8.
    options = OoddSettings(oodd_items=3, oodd_neighbour=2)
    scores = noise_scores(of_scores([A, B, C, D], [0.9, 0.5, 0.7, 0.1]), options)
    np.testing.assert_allclose(scores, [0.9, 0.5, 0.75, 0.45], rtol=1e-6)


def test_known_noise_always_enters_and_may_leave():
    # d takes c's place, and loses it to the next item: that one finds itself, the last one a.
    options = OoddSettings(oodd_items=2, oodd_neighbour=1)
    data = of_scores([A, C, D, C, D], [0.9, 0.7, 0.1, 0.2, 0.1], [0, 0, 1, 0, 0])
    scores = noise_scores(data, options)
    np.testing.assert_allclose(scores, [0.9, 0.85, 0.55, 0.6, 0.45], rtol=1e-6)


def test_cosines_below_zero_count_as_zero_and_scores_stay_within_the_grid():
    options = OoddSettings(oodd_items=2, oodd_neighbour=1)
    opposite = of_scores([A, A, [-1, 0]], [1.0, 1.0, 0.0])
    assert noise_scores(opposite, options).tolist() == [1.0, 1.0, 0.0]


@settings(max_examples=80, deadline=None)
@given(
    items=st.integers(0, 80),
    kept=st.integers(2, 20),
    neighbour=st.integers(1, 6),
    batch_size=st.integers(1, 9),
    block=st.sampled_from([1, 7, 256]),
    known=st.sampled_from([0.0, 0.2, 1.0]),
    steps=st.sampled_from([None, 3]),
    seed=st.integers(0, 1 << 30),
)
def test_blocks_are_one_item_after_another(
    items, kept, neighbour, batch_size, block, known, steps, seed
):
    data = random_stream(items, seed, known, steps=steps)
    options = OoddSettings(
        batch_size=batch_size, oodd_items=max(kept, neighbour + 1), oodd_neighbour=neighbour
    )
    with mock.patch.object(oodd, "_BLOCK", block):
        scores = noise_scores(data, options)
    np.testing.assert_allclose(scores, reference.oodd(data, options), atol=1e-6)
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize("batch_size", [1, 16])
@pytest.mark.parametrize("known", [0.0, 0.12])
@pytest.mark.parametrize("seed", range(3))
def test_decisions_of_a_stream_that_fills_the_dictionary(batch_size, known, seed):
    data = random_stream(600, seed, known)
    options = OoddSettings(batch_size=batch_size, oodd_items=100)
    threshold = ThresholdSettings(queue=64)
    expected = reference.oodd(data, options)
    found = OnlineThreshold(threshold, batch_size)(expected)
    decisions = oodd.OODD(data, options, threshold).push(data)
    np.testing.assert_allclose(1 - decisions.id_score, expected, atol=1e-6)
    assert np.array_equal(decisions.is_noise, expected > found)


def test_a_temperature_is_that_of_the_softmax_over_cosines():
    # Temperature 1 of two classes at cosines 1 and 0: q = e / (e + 1), whatever the model's scale.
    data = of_features([[3, 3], [2, 0], [0, 5]], np.eye(2), 100.0)
    options = OoddSettings(oodd_temperature=1.0, oodd_items=5, oodd_neighbour=4)
    q = np.e / (np.e + 1)
    np.testing.assert_allclose(noise_scores(data, options), [0.5, 1 - q, 1 - q], rtol=1e-6)
    ranked = OoddSettings(oodd_temperature=1.0, oodd_items=2, oodd_neighbour=1)
    first, second, third = noise_scores(data, ranked)
    assert first == pytest.approx(0.5)
    assert second == pytest.approx((1 - q + 1) / 2)
    assert third == pytest.approx((1 - q + np.sqrt(0.5)) / 2)  # no more unlike ID than either
