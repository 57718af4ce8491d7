import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from zsntta_cli.simulation.metrics import METRICS, Judged, Measures, harmonic_mean, measure


def of(labels, classes, noise):
    samples = np.array(labels), np.array(classes), np.array(noise, bool), np.zeros(len(labels))
    return measure(Judged(*samples))["accuracies"]


def detection(score, is_id):
    labels = np.where(is_id, 0, -1)
    return measure(Judged(labels, np.zeros_like(labels), None, score))["detection"]


def test_a_score_without_a_decision_has_no_metric_of_decisions():
    measures = measure(Judged(np.array([0, -1]), np.array([0, 0]), None, np.array([1.0, 0.0])))
    assert measures["detection"].auroc == 1
    for group in ("accuracies", "flags"):
        assert all(math.isnan(value) for value in measures[group].values())


def test_a_metric_that_was_not_measured_is_nan_and_another_name_is_an_error():
    assert math.isnan(Measures(acc_s=0.5).acc_n)
    with pytest.raises(AttributeError):
        _ = Measures(acc_s=0.5).acc_x


@given(st.floats(0, 1), st.sampled_from(list(METRICS.values())))
def test_a_metric_is_shown_as_its_line_says(value, metric):
    shown = metric.text(value, 0.5)
    assert shown == (f"{100 * value:.2f}±50.00" if metric.is_percent else f"{value:.2f}±0.50")
    assert metric.text(math.nan, 0.5) == "-"


def test_accuracies_by_hand():
    # ID: right, wrong class, right class but rejected; OOD: rejected, accepted.
    result = of([0, 1, 2, -1, -1], [0, 0, 2, 1, 1], [0, 0, 1, 1, 0])
    assert (result.acc_s, result.acc_n) == pytest.approx((1 / 3, 1 / 2))
    assert result.acc_h == pytest.approx(2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2))


def test_streams_without_one_kind_have_no_metric_for_it():
    clean = of([0, 1], [0, 1], [0, 1])
    assert clean.acc_s == 0.5
    assert math.isnan(clean.acc_n)
    assert math.isnan(clean.acc_h)
    noisy = of([-1, -1], [0, 0], [1, 0])
    assert math.isnan(noisy.acc_s)
    assert noisy.acc_n == 0.5


def test_all_or_none_rejected():
    assert of([0, -1], [0, 0], [1, 1]) == of([3, -1], [3, 0], [1, 1])
    everything = of([0, -1], [0, 0], [1, 1])
    assert (everything.acc_s, everything.acc_n, everything.acc_h) == (0, 1, 0)
    nothing = of([0, -1], [0, 0], [0, 0])
    assert (nothing.acc_s, nothing.acc_n, nothing.acc_h) == (1, 0, 0)
    assert harmonic_mean(0, 0) == 0


samples = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]) | st.floats(0, 1), st.booleans()),
    min_size=2,
    max_size=60,
).filter(lambda pairs: len({is_id for _, is_id in pairs}) == 2)


@given(samples)
def test_detection_is_scikit_learns(pairs):
    score = np.array([s for s, _ in pairs])
    is_id = np.array([i for _, i in pairs])
    result = detection(score, is_id)
    assert result.auroc == pytest.approx(roc_auc_score(is_id, score))
    assert result.aupr == pytest.approx(average_precision_score(is_id, score))
    fpr, tpr, _ = roc_curve(is_id, score, drop_intermediate=False)
    assert result.fpr95 == pytest.approx(fpr[np.flatnonzero(tpr >= 0.95)[0]])


def test_detection_of_one_kind_is_nan():
    assert math.isnan(detection(np.array([0.1, 0.2]), np.array([True, True])).auroc)


def test_fpr95_by_hand():
    # 20 ID scores 1 … 20; 95 % of them are kept at 2; one of two OOD samples is above it.
    score = np.append(np.arange(1, 21), [1.5, 10.0])
    assert detection(score, np.append(np.ones(20, bool), [False, False])).fpr95 == 0.5
