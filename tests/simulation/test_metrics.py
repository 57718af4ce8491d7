import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    roc_auc_score,
    roc_curve,
)

from zsntta_cli.simulation.metrics import METRICS, REPORTS, Judged, class_counts, measure


def detection(score, is_id):
    labels = np.where(is_id, 0, -1)
    return measure(Judged(labels, np.zeros_like(labels), None, score))["detection"]


def test_every_metric_has_its_line_in_the_documents():
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
    table = page.partition("\n## Metrics\n")[2].partition("\n## ")[0]
    names = [
        re.findall(r"`(\w+)`", line.split("|")[1]) for line in table.splitlines() if "|" in line
    ]
    assert sorted(name for line in names for name in line) == sorted(METRICS)


def test_the_columns_of_each_report():
    heads = {
        report: " ".join(metric.head for metric in METRICS.values() if report in metric.reports)
        for report in REPORTS
    }
    assert heads == {
        "accuracy": "Acc_S Acc_N Acc_H",
        "ood": "AUROC FPR95(ID+) FPR95(OOD+) AUPR(ID+) AUPR(OOD+)",
        "flags": "Acc_S Acc_N Acc_H Prec Flagged AUROC FPR95(ID+) FPR95(OOD+)",
        "open-set": "Acc_H Best Acc_H Gap ID acc OSCR",
        "calibration": "ECE(noise) Brier(noise) ECE(class) Brier(class)",
    }
    falling = {metric.name for metric in METRICS.values() if metric.lower_is_better}
    calibration = {"ece_noise", "brier_noise", "ece_class", "brier_class"}
    assert falling == {"clean_flagged", "fpr95", "fpr95_ood", "acc_h_gap", *calibration}
    unranked = {metric.name for metric in METRICS.values() if not metric.is_ranked}
    assert unranked == {"flagged", "acc_h_gap"}
    text = METRICS["acc_s"].text
    assert (text(0.12345), text(0.5, 0.002), text(math.nan, 0.1)) == ("12.35", "50.00±0.20", "-")


@given(
    st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 2), st.booleans()), min_size=1),
    st.booleans(),
)
def test_counts_by_class_are_those_of_a_confusion_matrix(rows, decides):
    labels, classes, noise = map(np.array, zip(*rows, strict=True))
    of_class = class_counts(Judged(labels, classes, noise if decides else None, noise * 1.0), 3)
    known = [0, 1, 2, 3]  # OOD samples are behind the classes
    matrix = confusion_matrix(np.where(labels < 0, 3, labels), classes, labels=known)[:, :3]
    assert of_class.images.tolist() == matrix.sum(axis=1).tolist()
    assert of_class.right.tolist() == [*matrix.diagonal(), 0]
    called = [int((noise & (labels == (c if c < 3 else -1))).sum()) for c in known]
    assert of_class.noise is None if not decides else of_class.noise.tolist() == called
    for c in known:
        others = [0 if taken == c else matrix[c, taken] for taken in range(3)]
        assert of_class.confused[c] == max(others)
        first = others.index(max(others)) if max(others) else -1
        assert of_class.confused_with[c] == first


NAN = math.nan


@pytest.mark.parametrize(
    ("labels", "classes", "noise", "accuracies", "flags"),
    [
        # ID: right, wrong class, right class but rejected; OOD: rejected, accepted.
        ([0, 1, 2, -1, -1], [0, 0, 2, 1, 1], [0, 0, 1, 1, 0], (1/3, 1/2, 2/5), (1/2, 2/5, 1/3)),
        ([0, 1], [0, 1], [0, 1], (1/2, NAN, NAN), (0, 1/2, 1/2)),
        ([-1, -1], [0, 0], [1, 0], (NAN, 1/2, NAN), (1, 1/2, NAN)),
        ([0, -1], [0, 0], [0, 0], (1, 0, 0), (NAN, 0, 0)),
    ],
)  # fmt: skip
def test_accuracies_and_flags_by_hand(labels, classes, noise, accuracies, flags):
    """What a stream has no samples for is no number."""
    samples = np.array(labels), np.array(classes), np.array(noise, bool), np.zeros(len(labels))
    result = measure(Judged(*samples))
    found = [result["accuracies"][name] for name in ("acc_s", "acc_n", "acc_h")]
    assert found == pytest.approx(accuracies, nan_ok=True)
    found = [result["flags"][name] for name in ("precision", "flagged", "clean_flagged")]
    assert found == pytest.approx(flags, nan_ok=True)


scores = st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.5, 0.9, 1.0]) | st.floats(0, 1)
samples = st.lists(st.tuples(scores, st.booleans()), min_size=2, max_size=60).filter(
    lambda pairs: len({is_id for _, is_id in pairs}) == 2
)


@given(samples)
def test_detection_is_scikit_learns(pairs):
    score = np.array([s for s, _ in pairs])
    is_id = np.array([i for _, i in pairs])
    result = detection(score, is_id)
    assert math.isnan(result.brier_noise), "a score is no probability unless it says so"
    assert result.auroc == pytest.approx(roc_auc_score(is_id, score))
    assert result.aupr == pytest.approx(average_precision_score(is_id, score))
    assert result.aupr_ood == pytest.approx(average_precision_score(~is_id, -score))
    for name, positive, confidence in (("fpr95", is_id, score), ("fpr95_ood", ~is_id, -score)):
        fpr, tpr, _ = roc_curve(positive, confidence, drop_intermediate=False)
        assert result[name] == fpr[np.argmax(tpr >= 0.95)]


def judged(rows, is_probability=False):
    """Samples of scores, labels (-1: OOD), whether the class is right, and decisions."""
    score, labels, is_named, noise = map(np.array, zip(*rows, strict=True))
    classes = np.where(is_named & (labels >= 0), labels, 9)
    return Judged(labels, classes, noise, score, is_probability, score if is_probability else None)


rows = st.lists(
    st.tuples(scores, st.integers(-1, 3), st.booleans(), st.booleans()), min_size=1, max_size=40
)


@given(rows)
def test_open_set_metrics_are_those_of_going_through_all_thresholds(rows):
    samples = judged(rows)
    result, has_class = measure(samples), samples.class_index == samples.labels
    is_id, score = samples.labels >= 0, samples.id_score
    if is_id.any():
        assert result["detection"].id_accuracy == has_class[is_id].mean()
    if is_id.all() or not is_id.any():
        assert math.isnan(result["detection"].oscr)
        assert math.isnan(result["accuracies"].acc_h_gap)
        return
    pairs = [
        right * ((own > other) + (own == other) / 2)
        for own, right in zip(score[is_id], has_class[is_id], strict=True)
        for other in score[~is_id]
    ]
    assert result["detection"].oscr == pytest.approx(np.mean(pairs))
    by_threshold = [
        measure(Judged(samples.labels, samples.class_index, score < threshold, score))["accuracies"]
        for threshold in (*score, 2.0)
    ]
    best = max(accuracies.acc_h for accuracies in by_threshold)
    assert result["detection"].best_acc_h == best
    assert result["accuracies"].acc_h_gap == best - result["accuracies"].acc_h
    assert all(accuracies.acc_h_gap >= 0 for accuracies in by_threshold), "a fixed one is no better"


def slow_ece(probabilities, outcomes):
    """Fifteen bins, each with its upper edge; the first has 0, too."""
    total = 0.0
    for i in range(15):
        inside = [
            (p, y)
            for p, y in zip(probabilities, outcomes, strict=True)
            if i < p * 15 <= i + 1 or (i == 0 and p == 0)
        ]
        if inside:
            mean, share = np.mean([p for p, _ in inside]), np.mean([y for _, y in inside])
            total += len(inside) / len(probabilities) * abs(mean - share)
    return total


@given(rows)
def test_calibration_is_that_of_references(rows):
    samples = judged(rows, is_probability=True)
    result, is_id = measure(samples)["detection"], samples.labels >= 0
    of_noise = 1 - samples.id_score
    brier = brier_score_loss(~is_id, of_noise, pos_label=True)
    assert result.brier_noise == pytest.approx(brier)
    assert result.ece_noise == pytest.approx(slow_ece(of_noise, ~is_id))
    if not is_id.any():
        assert math.isnan(result.brier_class)
        assert math.isnan(result.ece_class)
        return
    of_class, is_named = samples.id_score[is_id], (samples.class_index == samples.labels)[is_id]
    brier = brier_score_loss(is_named, of_class, pos_label=True)
    assert result.brier_class == pytest.approx(brier)
    assert result.ece_class == pytest.approx(slow_ece(of_class, is_named))
