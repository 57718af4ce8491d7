"""The scikit-learn style adaptor, beside scikit-learn itself where it is asked."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from small_detectors import assert_same_state, world

from zsntta_cli import NoiseEstimator, OnlineDetector
from zsntta_cli.errors import SettingsError

TEXT, FEATURES, _ = world()
SETTINGS = {"ridge_first": 16}


def estimator():
    return NoiseEstimator(TEXT, 20.0, settings=SETTINGS)


def test_fit_is_of_the_whole_and_predict_by_what_it_learned():
    fitted = estimator().fit(FEATURES[:200])
    online = OnlineDetector(TEXT, 20.0, **SETTINGS)
    online.decide_all(FEATURES[:200], learn=True)
    expected = online.predict(FEATURES[200:])
    predicted = fitted.predict(FEATURES[200:])
    assert set(predicted.tolist()) == {-1, 1}
    np.testing.assert_array_equal(predicted == -1, expected.flagged)
    np.testing.assert_array_equal(fitted.score_samples(FEATURES[200:]), -expected.margin)
    decision = fitted.decision_function(FEATURES[200:])
    np.testing.assert_array_equal(decision < 0, predicted == -1)
    assert (fitted.n_features_in_, fitted.offset_, fitted.detector_.seen) == (16, 0.0, 200)
    assert_same_state(fitted.detector_, online)


def test_fit_predict_is_what_is_decided_in_hindsight():
    online = OnlineDetector(TEXT, 20.0, **SETTINGS)
    for count in (10, 40, 300):
        decided = online.decide_all(FEATURES[:count], seed=3)
        assert online.seen == 0
        fitted = estimator().set_params(seed=3)
        np.testing.assert_array_equal(fitted.fit_predict(FEATURES[:count]) == -1, decided.flagged)
        once_more = estimator().set_params(seed=3).fit(FEATURES[:count])
        np.testing.assert_array_equal(
            fitted.score_samples(FEATURES), once_more.score_samples(FEATURES)
        )
        assert fitted.detector_.ready == bool(decided.adapted.all())


def test_a_folder_that_is_sorted_is_no_worse():
    """Noise first or last: what is decided as it comes is worse where all noise comes first."""
    text, features, is_noise = mostly_clean()
    order = np.argsort(~is_noise, kind="stable")
    flagged = NoiseEstimator(text, 20.0).fit_predict(features[order]) == -1
    arriving = OnlineDetector(text, 20.0).update(features[order]).flagged
    noise_first = is_noise[order]
    assert flagged[noise_first].mean() > max(0.95, arriving[noise_first].mean())
    assert flagged[~noise_first].mean() <= arriving[~noise_first].mean()
    fitted = NoiseEstimator(text, 20.0).fit(features[order])
    assert (fitted.predict(features[order]) == np.where(flagged, -1, 1)).mean() > 0.98


def mostly_clean(count=1000):
    rng = np.random.default_rng(3)
    text = rng.normal(size=(5, 64))
    is_noise = rng.random(count) < 0.2
    centres = np.where(is_noise[:, None], 0, 1.5 * text[rng.integers(5, size=count)])
    return text, centres + rng.normal(size=(count, 64)), is_noise


def test_partial_fit_learns_a_stream_in_its_order():
    parts = estimator().partial_fit(FEATURES[:100]).partial_fit(FEATURES[100:])
    online = OnlineDetector(TEXT, 20.0, **SETTINGS)
    online.update(FEATURES)
    assert parts.detector_.seen == 300
    np.testing.assert_allclose(parts.score_samples(FEATURES), -online.predict(FEATURES).margin)
    again = parts.fit(FEATURES[:10]).fit(FEATURES)
    assert again.detector_.seen == 300, "fit forgets"


def test_a_flag_says_how_much_of_what_fit_sees():
    for flag, count in (("10%", 30), (0.1, 30), (50, 50), (np.int64(1), 1)):
        one = NoiseEstimator(TEXT, 20.0, flag=flag)
        assert (one.fit_predict(FEATURES) == -1).sum() == count
        assert (one.predict(FEATURES) == -1).sum() == count
        offset = one.offset_
        decision = one.score_samples(FEATURES) - offset
        np.testing.assert_array_equal(one.decision_function(FEATURES), decision)
        assert one.partial_fit(FEATURES[:5]).offset_ == offset
    alike = NoiseEstimator(TEXT, 20.0, flag=7)
    assert (alike.fit_predict(np.repeat(FEATURES[:10], 10, axis=0)) == -1).sum() == 7
    with pytest.raises(SettingsError, match="flag needs the images that fit sees: call fit first"):
        clone(one).partial_fit(FEATURES)


def test_classes_have_names():
    one = NoiseEstimator(TEXT, 20.0, class_names=["a", "b", "c"], logit_bias=-3.0).fit(FEATURES)
    assert one.classes_.tolist() == ["a", "b", "c"]
    assert one.detector_.logit_bias == -3.0
    assert one.detector_.predict(FEATURES[:1])[0].class_name in "abc"
    assert estimator().fit(FEATURES).classes_.tolist() == ["0", "1", "2"]
    assert repr(one) == "NoiseEstimator(method='ridge', logit_scale=20.0)"


def test_tables_and_tensors_are_taken():
    pd, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    table = pd.DataFrame(FEATURES, columns=[f"f{i}" for i in range(16)])
    of_table, known = estimator().fit(table), estimator().fit(FEATURES)
    np.testing.assert_allclose(of_table.score_samples(table), known.score_samples(FEATURES))
    assert of_table.feature_names_in_[0] == "f0"
    rows = torch.tensor(FEATURES)
    np.testing.assert_array_equal(estimator().fit(rows).predict(rows), known.predict(FEATURES))


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


def test_what_is_not_fitted_or_does_not_fit_is_refused_as_scikit_learn_refuses_it():
    for asked in ("predict", "score_samples", "decision_function"):
        with pytest.raises(
            NotFittedError, match="not fitted yet: call fit or partial_fit"
        ) as raised:
            getattr(estimator(), asked)(FEATURES)
        assert isinstance(raised.value, SettingsError)
        assert type(pickle.loads(pickle.dumps(raised.value))) is type(raised.value)
    with pytest.raises(SettingsError, match="x is none of text_features, logit_scale, method"):
        estimator().set_params(method="adand", x=1)
    assert estimator().set_params(method="zs-clip").method == "zs-clip"
    with pytest.raises(ValueError, match="features have 3 dims, text_features have 16"):
        estimator().fit(np.ones((2, 3)))
    with pytest.raises(ValueError, match="X has 3 features, but NoiseEstimator is expecting 16"):
        estimator().fit(FEATURES).predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match="method is 'tda'"):
        estimator().set_params(method="tda").fit(FEATURES)


def test_a_fit_that_fails_leaves_what_was_fitted():
    one = estimator().set_params(flag="fpr=10%")
    with pytest.raises(SettingsError, match="clean contains no image"):
        one.set_params(clean=FEATURES[:0]).fit(FEATURES)
    assert not one.__sklearn_is_fitted__()
    before = one.set_params(clean=FEATURES[:50]).fit(FEATURES).score_samples(FEATURES)
    with pytest.raises(SettingsError, match="clean contains no image"):
        one.set_params(clean=FEATURES[:0]).fit(FEATURES[:20])
    np.testing.assert_array_equal(one.score_samples(FEATURES), before)
    with pytest.raises(SettingsError, match="features have 16 dims, text_features have 3"):
        NoiseEstimator(np.eye(3)).partial_fit(FEATURES)


class Suited(NoiseEstimator):
    """One with classes of as many dims as it is given."""

    def __init__(self, method="ridge", seed=0):
        super().__init__(None, 20.0, method, seed=seed)

    def get_params(self, deep=True):
        return {"method": self.method, "seed": self.seed}

    def _begun(self):
        text = np.random.default_rng(0).normal(size=(3, self.n_features_in_))
        return OnlineDetector(text, self.logit_scale, self.method)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["ridge", "zs-clip"])
def test_what_scikit_learn_checks(method):
    expected = {
        "check_outliers_fit_predict": "fit_predict decides while it learns, as decide_all does; "
        "predict goes by all that was learned: they differ at the threshold",
        "check_estimators_dtypes": "a row of zeros is no feature",
        "check_classifier_data_not_an_array": "a row of ones is no feature",
    }
    results = check_estimator(
        Suited(method), expected_failed_checks=expected, on_skip=None, on_fail=None
    )
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    assert failed == {}
    assert sum(one["status"] == "passed" for one in results) > 40


def test_the_package_needs_no_scikit_learn_for_it():
    code = (
        "import sys, zsntta_cli; zsntta_cli.NoiseEstimator, zsntta_cli.NoiseDetector; "
        "print({'sklearn', 'torch', 'open_clip'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
