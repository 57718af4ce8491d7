"""The metrics of ZS-NTTA (Sec. 2, Eq. 2) and of OOD detection.

Metrics are fractions in [0, 1], unrounded; a metric without samples is nan. Each has its entry in
METRICS, which says where records, tables, CSV, page and plots show it, and its value in `measure`.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Numbers = NDArray[np.floating]
Counts = NDArray[np.integer]

ACCURACIES, FLAGS, DETECTION = "accuracies", "flags", "detection"  # parts of a record
_BINS = 15  # of equal width, each with its upper edge


@dataclass(frozen=True)
class Metric:
    """A metric, without a value: its names, and where it is shown."""

    name: str
    head: str  # of its column
    group: str  # the part of a record that it is in; the first two are of decisions
    reports: tuple[str, ...]  # the tables that show it, beside whatever shows all
    lower_is_better: bool = False
    is_ranked: bool = True  # whether one value of it is better than another, all else unknown

    def text(self, value: float, std: float = math.nan) -> str:
        """A value in percent as tables show it, with two digits; a dash without samples."""
        spread = "" if math.isnan(std) else f"±{100 * std:.2f}"
        return "-" if math.isnan(value) else f"{100 * value:.2f}{spread}"


_LOW = {"lower_is_better": True}
_EVERY = (
    Metric("acc_s", "Acc_S", ACCURACIES, ("accuracy", "flags")),
    # Of the samples that someone should look at it is the recall.
    Metric("acc_n", "Acc_N", ACCURACIES, ("accuracy", "flags")),
    Metric("acc_h", "Acc_H", ACCURACIES, ("accuracy", "flags", "open-set")),
    Metric("precision", "Prec", FLAGS, ("flags",)),
    Metric("flagged", "Flagged", FLAGS, ("flags",), is_ranked=False),
    Metric("clean_flagged", "Clean flagged", FLAGS, (), **_LOW),
    Metric("auroc", "AUROC", DETECTION, ("ood", "flags")),
    # Two usual definitions, which can disagree on who is better: with ID or OOD as positive.
    Metric("fpr95", "FPR95(ID+)", DETECTION, ("ood", "flags"), **_LOW),
    Metric("fpr95_ood", "FPR95(OOD+)", DETECTION, ("ood", "flags"), **_LOW),
    Metric("aupr", "AUPR(ID+)", DETECTION, ("ood",)),
    Metric("aupr_ood", "AUPR(OOD+)", DETECTION, ("ood",)),
    Metric("best_acc_h", "Best Acc_H", DETECTION, ("open-set",)),
    # What a better threshold could win; below 0 where the online one beats any fixed one. A bad
    # score has no gap either.
    Metric("acc_h_gap", "Gap", ACCURACIES, ("open-set",), **_LOW, is_ranked=False),
    Metric("id_accuracy", "ID acc", DETECTION, ("open-set",)),
    Metric("oscr", "OSCR", DETECTION, ("open-set",)),
    Metric("ece_noise", "ECE(noise)", DETECTION, ("calibration",), **_LOW),
    Metric("brier_noise", "Brier(noise)", DETECTION, ("calibration",), **_LOW),
    Metric("ece_class", "ECE(class)", DETECTION, ("calibration",), **_LOW),
    Metric("brier_class", "Brier(class)", DETECTION, ("calibration",), **_LOW),
)
METRICS = {metric.name: metric for metric in _EVERY}
REPORTS = ("accuracy", "ood", "flags", "open-set", "calibration")  # what `--report` may be


class Measures(dict[str, float]):
    """Values of metrics by name, as items and as attributes; nan for a metric not measured."""

    def __getattr__(self, name: str) -> float:
        if name in METRICS:
            return self.get(name, math.nan)
        raise AttributeError(name)


class Judged(NamedTuple):
    """T test samples with their truth, and what a method decided."""

    labels: NDArray[np.integer]  # (T,) true classes, -1 marks an OOD sample
    class_index: NDArray[np.integer]  # (T,)
    is_noise: Mask | None  # (T,) None: a score without a decision rule
    id_score: Numbers  # (T,) higher = more ID
    is_probability: bool = False  # whether the score is one: of being ID
    class_probability: Numbers | None = None  # (T,) of the class, if it is ID


class ClassCounts(NamedTuple):
    """Counts of samples by true class: of C classes, and last of the OOD samples."""

    images: Counts  # (C + 1,)
    right: Counts  # (C + 1,) classified right, whatever is called noise
    noise: Counts | None  # (C + 1,) called noise; None: a score without a decision rule
    confused_with: Counts  # (C + 1,) the other class that most were taken for; -1 if none were
    confused: Counts  # (C + 1,) those that were taken for it


def class_counts(samples: Judged, classes: int) -> ClassCounts:
    """Count what became of the samples of C classes; of equal confusions the first one counts."""
    rows, noise = samples.labels.astype(np.int64) % (classes + 1), samples.is_noise  # -1: the last
    cells, size = rows * classes + samples.class_index, (classes + 1, classes)
    taken_for = np.bincount(cells, minlength=(classes + 1) * classes).reshape(size)
    right = np.append(taken_for.diagonal(), 0)
    np.fill_diagonal(taken_for, 0)
    confused = taken_for.max(axis=1)
    return ClassCounts(
        np.bincount(rows, minlength=classes + 1), right,
        None if noise is None else np.bincount(rows[noise], minlength=classes + 1),
        np.where(confused, taken_for.argmax(axis=1), -1), confused,
    )  # fmt: skip


def measure(samples: Judged) -> dict[str, Measures]:
    """All metrics of some samples, by the part of a record that they are in."""
    is_id = samples.labels >= 0
    is_named = samples.class_index == samples.labels  # ID and classified right, whatever is noise
    values = {"id_accuracy": _mean(is_named[is_id])}
    if is_id.any() and not is_id.all():
        values |= _of_all_thresholds(samples.id_score, is_id, is_named)
    if samples.is_noise is not None:
        noise = samples.is_noise
        acc_s, acc_n = _mean((is_named & ~noise)[is_id]), _mean(noise[~is_id])
        acc_h = harmonic_mean(acc_s, acc_n)
        values |= {
            "acc_s": acc_s,  # ID samples that are called clean and classified right
            "acc_n": acc_n,  # OOD samples that are called noise
            "acc_h": acc_h,
            "acc_h_gap": values.get("best_acc_h", math.nan) - acc_h,
            "precision": _mean(~is_id[noise]),
            "flagged": _mean(noise),
            "clean_flagged": _mean(noise[is_id]),
        }
    if samples.is_probability:
        of_noise = 1 - samples.id_score
        values["ece_noise"], values["brier_noise"] = _calibration(of_noise, ~is_id)
    if samples.class_probability is not None:  # for OOD samples no class is right
        of_class = samples.class_probability[is_id]
        values["ece_class"], values["brier_class"] = _calibration(of_class, is_named[is_id])
    groups = {ACCURACIES: Measures(), FLAGS: Measures(), DETECTION: Measures()}
    for name, metric in METRICS.items():
        groups[metric.group][name] = values.get(name, math.nan)
    return groups


def _of_all_thresholds(id_score: Numbers, is_id: Mask, is_named: Mask) -> dict[str, float]:
    """The metrics of the ID score (T,) itself, of samples of both kinds.

    `oscr` follows "Reducing Network Agnostophobia", arXiv 1811.04110: the area under the share of
    ID samples named right and accepted, over the share of OOD samples accepted, by trapezoids.
    `best_acc_h` is the largest Acc_H over all thresholds, each fixed for the stream.
    """
    order = np.argsort(id_score, kind="stable")[::-1]
    score = id_score[order]
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True))
    # (K + 1,) samples at or above each of K distinct scores, from 0 and the highest score first.
    n_id = np.append(0, np.cumsum(is_id[order])[ends])
    n_ood = np.append(0, np.cumsum(~is_id[order])[ends])
    n_named = np.append(0, np.cumsum(is_named[order])[ends])
    fpr, acc_s, acc_n = n_ood / n_ood[-1], n_named / n_id[-1], (n_ood[-1] - n_ood) / n_ood[-1]
    sums = acc_s + acc_n
    (fpr95, aupr), (fpr95_ood, aupr_ood) = (
        _of_ranking(n_id, n_ood),
        # The same samples from the other end, with OOD as the positive kind.
        _of_ranking((n_ood[-1] - n_ood)[::-1], (n_id[-1] - n_id)[::-1]),
    )
    return {
        "auroc": float(np.trapezoid(n_id / n_id[-1], fpr)),
        "fpr95": fpr95, "fpr95_ood": fpr95_ood, "aupr": aupr, "aupr_ood": aupr_ood,
        "oscr": float(np.trapezoid(acc_s, fpr)),
        "best_acc_h": float((2 * acc_s * acc_n / np.where(sums, sums, 1)).max()),
    }  # fmt: skip


def _of_ranking(positive: Counts, negative: Counts) -> tuple[float, float]:
    """FPR95 and average precision, of the samples (K + 1,) down to each distinct score.

    The former is the false positive rate at the first threshold with a true positive rate of 95 %,
    the latter the area under the precision-recall curve.
    """
    recall = positive / positive[-1]
    fpr95 = negative[np.searchsorted(recall, 0.95)] / negative[-1]
    precision = positive[1:] / (positive[1:] + negative[1:])
    return float(fpr95), float(np.sum(np.diff(recall) * precision))


def _calibration(probability: Numbers, came_true: Mask) -> tuple[float, float]:
    """Expected calibration error (arXiv 1706.04599) and Brier score of an event's probabilities.

    The first compares in each bin the mean probability with the share of true events; the second
    is the mean squared difference of a probability to 1 for true events, to 0 for others.
    """
    count = len(probability)
    if not count:
        return math.nan, math.nan
    cells = np.clip(np.ceil(probability * _BINS).astype(np.intp) - 1, 0, _BINS - 1)
    off = np.bincount(cells, probability - came_true, _BINS)
    return float(np.abs(off).sum() / count), float(np.sum((probability - came_true) ** 2) / count)


def harmonic_mean(a: float, b: float) -> float:
    """2ab / (a + b), 0 if both are 0, nan if one is nan."""
    return 2 * a * b / (a + b) if a + b else a + b


def _mean(values: Mask) -> float:
    return float(values.mean()) if len(values) else math.nan
