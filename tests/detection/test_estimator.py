"""The scikit-learn style adaptor, beside scikit-learn itself where it is asked."""

import sys

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from zsntta_cli import NoiseEstimator, OnlineDetector
from zsntta_cli.errors import SettingsError

RNG = np.random.default_rng(0)
TEXT = RNG.normal(size=(3, 16))
FEATURES = 10 * TEXT[RNG.integers(3, size=300)] / 4 + RNG.normal(size=(300, 16))
SETTINGS = {"ridge_first": 16}


def estimator():
    return NoiseEstimator(TEXT, 20.0, settings=SETTINGS)


def test_it_is_the_detector_with_other_signs():
    fitted = estimator().fit(FEATURES[:200])
    online = OnlineDetector(TEXT, 20.0, **SETTINGS)
    decided = online.update(FEATURES[:200])
    known = online.predict(FEATURES[200:])
    found = fitted.predict(FEATURES[200:])
    assert set(found.tolist()) == {-1, 1}
    np.testing.assert_array_equal(found == -1, known.flagged)
    np.testing.assert_array_equal(fitted.score_samples(FEATURES[200:]), -known.score)
    decision = fitted.decision_function(FEATURES[200:])
    np.testing.assert_array_equal(decision < 0, found == -1)
    assert fitted.n_features_in_ == 16
    np.testing.assert_array_equal(estimator().fit_predict(FEATURES[:200]) == -1, decided.flagged)


def test_fit_begins_anew_and_partial_fit_goes_on():
    parts = estimator().partial_fit(FEATURES[:100]).partial_fit(FEATURES[100:])
    whole = estimator().fit(FEATURES[:10]).fit(FEATURES)
    assert parts.detector_.seen == whole.detector_.seen == 300
    np.testing.assert_allclose(
        parts.score_samples(FEATURES), whole.score_samples(FEATURES), atol=1e-5
    )


def test_asking_changes_nothing():
    fitted = estimator().fit(FEATURES)
    before = fitted.detector_.state()
    fitted.predict(FEATURES)
    fitted.score_samples(FEATURES)
    fitted.decision_function(FEATURES)
    for name, value in fitted.detector_.state().items():
        np.testing.assert_array_equal(value, before[name])


def test_scikit_learn_takes_it():
    one = estimator()
    other = clone(one)
    assert other is not one
    assert other.get_params()["settings"] == SETTINGS
    assert is_outlier_detector(one)
    pipeline = make_pipeline(FunctionTransformer(lambda x: 3 * x), one).fit(FEATURES)
    np.testing.assert_array_equal(
        pipeline.predict(FEATURES), estimator().fit(3 * FEATURES).predict(3 * FEATURES)
    )


def test_errors():
    with pytest.raises(SettingsError, match="not fitted yet: call fit or partial_fit first"):
        estimator().predict(FEATURES)
    with pytest.raises(SettingsError, match="x is none of text_features, logit_scale, method"):
        estimator().set_params(x=1)
    assert estimator().set_params(method="zs-clip").method == "zs-clip"
    with pytest.raises(SettingsError, match="features have 3 dims, text_features have 16"):
        estimator().fit(np.ones((2, 3)))


def test_the_package_needs_no_scikit_learn_for_it():
    import subprocess

    code = (
        "import sys, zsntta_cli; zsntta_cli.NoiseEstimator, zsntta_cli.NoiseDetector; "
        "print({'sklearn', 'torch', 'open_clip'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
