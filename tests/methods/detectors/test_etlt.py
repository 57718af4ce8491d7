"""ETLT: small regressions by hand."""

import numpy as np
from streams import of_scores

from zsntta_cli.methods.detectors.etlt import ETLT
from zsntta_cli.settings import ThresholdSettings

ADAPTIVE = ThresholdSettings()


def run(data, options, threshold):
    """The decisions on a whole stream."""
    return ETLT(data, options, threshold).push(data)


def test_by_hand():
    # Two kinds of images: each gets the mean of its kind, and the split is between these.
    data = of_scores([[2, 0]] * 3 + [[0, 5]], [0.2, 0.3, 0.4, 0.9])
    decisions = run(data, ETLT.Settings(), ADAPTIVE)
    np.testing.assert_allclose(decisions.id_score, [0.7, 0.7, 0.7, 0.1], atol=1e-4)
    np.testing.assert_allclose(decisions.detector_threshold, 0.6, atol=1e-4)
    assert decisions.is_noise.tolist() == [False, False, False, True]


def test_known_noise_is_noise_and_counts_for_nothing():
    kinds, u = [[1, 0]] * 3 + [[0, 1]] * 2, [0.2, 0.3, 0.4, 0.9, 0.9]
    plain = run(of_scores(kinds, u), ETLT.Settings(), ADAPTIVE)
    data = of_scores([*kinds, [1, 0]], [*u, 0.0], [0] * 5 + [1])
    decisions = run(data, ETLT.Settings(), ADAPTIVE)
    np.testing.assert_allclose(decisions.id_score[:5], plain.id_score)
    assert decisions.is_noise.tolist() == [False, False, False, True, True, True]


def test_a_fixed_threshold_is_on_the_fitted_values():
    data = of_scores([[2, 0]] * 3 + [[0, 5]], [0.2, 0.3, 0.4, 0.9])
    fixed = run(data, ETLT.Settings(), ThresholdSettings(fixed=0.75))  # clean iff S >= 0.75
    assert fixed.is_noise.all()
    assert not run(data, ETLT.Settings(), ThresholdSettings(fixed=0.05)).is_noise.any()
