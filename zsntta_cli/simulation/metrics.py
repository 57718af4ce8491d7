"""Metrics of ZS-NTTA (Sec. 2, Eq. 2) and of OOD detection: arrays in, plain numbers out.

Fractions in [0, 1], unrounded. A metric that has no samples is nan.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Accuracies:
    """Acc_S, Acc_N and Acc_H of one stream."""

    acc_s: float  # share of ID samples that are called clean and classified right
    acc_n: float  # share of OOD samples that are called noise
    acc_h: float  # their harmonic mean


def accuracies(
    labels: NDArray[np.integer], class_index: NDArray[np.integer], is_noise: NDArray[np.bool_]
) -> Accuracies:
    """Accuracies of decisions on T samples; a label of -1 marks an OOD sample."""
    is_id = labels >= 0
    right = np.where(is_id, ~is_noise & (class_index == labels), is_noise)
    acc_s, acc_n = _mean(right[is_id]), _mean(right[~is_id])
    return Accuracies(acc_s, acc_n, harmonic_mean(acc_s, acc_n))


@dataclass(frozen=True)
class Flags:
    """What calling samples noise is worth to someone who looks at them."""

    precision: float  # share of the flagged samples that are OOD; nan where none is flagged
    flagged: float  # share of all samples that is flagged
    clean_flagged: float  # share of the ID samples that is flagged


def flags(labels: NDArray[np.integer], is_noise: NDArray[np.bool_]) -> Flags:
    """How good the flag is on T samples; a label of -1 marks an OOD sample. Recall is Acc_N."""
    is_id = labels >= 0
    return Flags(_mean(~is_id[is_noise]), _mean(is_noise), _mean(is_noise[is_id]))


def harmonic_mean(a: float, b: float) -> float:
    """2ab / (a + b), 0 where both are 0, nan where one is."""
    return 2 * a * b / (a + b) if a + b else a + b


def _mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else math.nan


@dataclass(frozen=True)
class Detection:
    """How well an ID score ranks ID samples (the positive class) above OOD samples."""

    auroc: float
    fpr95: float  # share of OOD samples above the threshold that keeps 95 % of the ID samples
    aupr: float  # average precision, ID positive


def detection(id_score: NDArray[np.floating], is_id: NDArray[np.bool_]) -> Detection:
    """AUROC, FPR95 and AUPR of T scores (higher = more ID); nan where one kind is missing."""
    n_id, n_ood = int(is_id.sum()), int((~is_id).sum())
    if not n_id or not n_ood:
        return Detection(math.nan, math.nan, math.nan)
    order = np.argsort(-id_score, kind="stable")
    score, hit = id_score[order], is_id[order]
    last_of_tie = np.append(score[1:] != score[:-1], True)
    tp = np.cumsum(hit)[last_of_tie]  # ID samples at or above each distinct score
    fp = np.cumsum(~hit)[last_of_tie]
    tpr, fpr = np.append(0, tp) / n_id, np.append(0, fp) / n_ood
    precision = tp / (tp + fp)
    return Detection(
        auroc=float(np.trapezoid(tpr, fpr)),
        fpr95=float(fpr[np.searchsorted(tpr, 0.95)]),
        aupr=float(np.sum(np.diff(tpr) * precision)),
    )
