"""CMA, ETLT and OODD by hand."""

import numpy as np
import pytest
from streams import decide, of_features, of_scores

from zsntta_cli.settings import ThresholdSettings

ADAPTIVE = ThresholdSettings()


def run(method, data, threshold=ADAPTIVE, **values):
    return decide(method, data, threshold, **values)[0]


def test_cma():
    # Logits ln 4 or 0. Two classes, twice as many texts: four of e3, or two of each of e3 and e4.
    eye, features = np.eye(4), np.eye(4)[[2, 0, 3]]
    one = run("cma", of_features(features, eye[:2], np.log(4), words=eye[2:3]), cma_times=2)
    np.testing.assert_allclose(one.id_score, [1 / 18, 4 / 9, 1 / 6], rtol=1e-6)
    two = run("cma", of_features(features, eye[:2], np.log(4), words=eye[2:]), cma_times=2)
    np.testing.assert_allclose(two.id_score, [1 / 12, 4 / 9, 1 / 12], rtol=1e-6)
    # u 0.917 and 0.556: the first grid value between is 0.56.
    assert two.detector_threshold.tolist() == [0.5, 0.56, 0.56]
    assert two.is_noise.tolist() == [True, False, True]
    assert two.class_index.tolist() == [0, 0, 0]


# ETLT: two kinds of images, of which each gets the mean of its kind; the split is between these.
KINDS, U = [[2, 0]] * 3 + [[0, 5]], [0.2, 0.3, 0.4, 0.9]


def test_etlt():
    found = run("etlt", of_scores(KINDS, U))
    np.testing.assert_allclose(found.id_score, [0.7, 0.7, 0.7, 0.1], atol=1e-4)
    np.testing.assert_allclose(found.detector_threshold, 0.6, atol=1e-4)
    assert found.is_noise.tolist() == [False, False, False, True]


def test_etlt_calls_known_noise_noise_and_learns_nothing_from_it():
    found = run("etlt", of_scores([*KINDS, [1, 0]], [*U, 0.0], [0] * 4 + [1]))
    np.testing.assert_allclose(found.id_score[:4], run("etlt", of_scores(KINDS, U)).id_score)
    assert found.is_noise.tolist() == [False, False, False, True, True]


def test_etlts_fixed_threshold_is_on_the_fitted_values():
    for fixed, is_noise in ((0.75, True), (0.05, False)):  # clean iff S >= 0.75
        found = run("etlt", of_scores(KINDS, U), ThresholdSettings(fixed=fixed))
        assert (found.is_noise == is_noise).all()


A, B, C, D = [1, 0], [0.6, 0.8], [0, 1], [0.8, 0.6]


def oodd(data, items=2, neighbour=1, **values):
    """The noise scores (T,), whatever the threshold; two entries, of which the nearest counts."""
    return 1 - run("oodd", data, oodd_items=items, oodd_neighbour=neighbour, **values).id_score


def test_oodd():
    # d has less u than both entries: it does not enter.
    scores = oodd(of_scores([A, B, C, D], [0.9, 0.5, 0.7, 0.1]))
    np.testing.assert_allclose(scores, [0.9, 1.5 / 2, 1.7 / 2, (0.1 + 0.8) / 2], rtol=1e-6)
    # Known noise always enters and may leave: d takes c's place, and loses it to the next item,
    # which finds itself, the last one a.
    data = of_scores([A, C, D, C, D], [0.9, 0.7, 0.1, 0.2, 0.1], [0, 0, 1, 0, 0])
    np.testing.assert_allclose(oodd(data), [0.9, 0.85, 0.55, 0.6, 0.45], rtol=1e-6)
    # Cosines below zero count as zero.
    assert oodd(of_scores([A, A, [-1, 0]], [1.0, 1.0, 0.0])).tolist() == [1.0, 1.0, 0.0]


def test_oodds_temperature_is_that_of_the_softmax_over_cosines():
    # Temperature 1 of two classes at cosines 1 and 0: q = e / (e + 1), whatever the model's scale.
    data, q = of_features([[3, 3], [2, 0], [0, 5]], np.eye(2), 100.0), np.e / (np.e + 1)
    scores = oodd(data, 5, 4, oodd_temperature=1.0)
    np.testing.assert_allclose(scores, [0.5, 1 - q, 1 - q], rtol=1e-6)
    first, second, third = oodd(data, oodd_temperature=1.0)
    assert first == pytest.approx(0.5)
    assert second == pytest.approx((1 - q + 1) / 2)
    assert third == pytest.approx((1 - q + np.sqrt(0.5)) / 2)  # no more unlike ID than either
