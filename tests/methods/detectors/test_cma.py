"""CMA by hand."""

import numpy as np
from streams import of_features

from zsntta_cli.methods.detectors import cma
from zsntta_cli.methods.detectors.cma import CMA
from zsntta_cli.settings import ThresholdSettings


def run(data, options, threshold):
    return cma.CMA(data, options, threshold).push(data)


def test_by_hand():
    # Logits ln 4 or 0. Two classes, twice as many texts: four of e3, or two of each of e3 and e4.
    eye, features = np.eye(4), np.eye(4)[[2, 0, 3]]
    options, threshold = CMA.Settings(cma_times=2), ThresholdSettings()
    one = run(of_features(features, eye[:2], np.log(4), words=eye[2:3]), options, threshold)
    np.testing.assert_allclose(one.id_score, [1 / 18, 4 / 9, 1 / 6], rtol=1e-6)
    two = run(of_features(features, eye[:2], np.log(4), words=eye[2:]), options, threshold)
    np.testing.assert_allclose(two.id_score, [1 / 12, 4 / 9, 1 / 12], rtol=1e-6)
    # u 0.917 and 0.556: the first grid value between is 0.56.
    assert two.detector_threshold.tolist() == [0.5, 0.56, 0.56]
    assert two.is_noise.tolist() == [True, False, True]
    assert two.class_index.tolist() == [0, 0, 0]
