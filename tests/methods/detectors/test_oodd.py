"""OODD: the dictionary by hand."""

import numpy as np
import pytest
from streams import of_features, of_scores

from zsntta_cli.methods.detectors import oodd
from zsntta_cli.methods.detectors.oodd import OODD
from zsntta_cli.settings import ThresholdSettings

A, B, C, D = [1, 0], [0.6, 0.8], [0, 1], [0.8, 0.6]


def noise_scores(data, options):
    """The noise scores (T,), whatever the threshold."""
    return 1 - oodd.OODD(data, options, ThresholdSettings()).push(data).id_score


def test_by_hand():
    # Two entries, the nearest counts. d has less u than both: it does not enter.
    options = OODD.Settings(oodd_items=2, oodd_neighbour=1)
    scores = noise_scores(of_scores([A, B, C, D], [0.9, 0.5, 0.7, 0.1]), options)
    np.testing.assert_allclose(scores, [0.9, 1.5 / 2, 1.7 / 2, (0.1 + 0.8) / 2], rtol=1e-6)


def test_known_noise_always_enters_and_may_leave():
    # d takes c's place, and loses it to the next item: that one finds itself, the last one a.
    options = OODD.Settings(oodd_items=2, oodd_neighbour=1)
    data = of_scores([A, C, D, C, D], [0.9, 0.7, 0.1, 0.2, 0.1], [0, 0, 1, 0, 0])
    scores = noise_scores(data, options)
    np.testing.assert_allclose(scores, [0.9, 0.85, 0.55, 0.6, 0.45], rtol=1e-6)


def test_cosines_below_zero_count_as_zero_and_scores_stay_within_the_grid():
    options = OODD.Settings(oodd_items=2, oodd_neighbour=1)
    opposite = of_scores([A, A, [-1, 0]], [1.0, 1.0, 0.0])
    assert noise_scores(opposite, options).tolist() == [1.0, 1.0, 0.0]


def test_a_temperature_is_that_of_the_softmax_over_cosines():
    # Temperature 1 of two classes at cosines 1 and 0: q = e / (e + 1), whatever the model's scale.
    data = of_features([[3, 3], [2, 0], [0, 5]], np.eye(2), 100.0)
    options = OODD.Settings(oodd_temperature=1.0, oodd_items=5, oodd_neighbour=4)
    q = np.e / (np.e + 1)
    np.testing.assert_allclose(noise_scores(data, options), [0.5, 1 - q, 1 - q], rtol=1e-6)
    ranked = OODD.Settings(oodd_temperature=1.0, oodd_items=2, oodd_neighbour=1)
    first, second, third = noise_scores(data, ranked)
    assert first == pytest.approx(0.5)
    assert second == pytest.approx((1 - q + 1) / 2)
    assert third == pytest.approx((1 - q + np.sqrt(0.5)) / 2)  # no more unlike ID than either
