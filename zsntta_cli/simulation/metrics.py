"""Metrics of ZS-NTTA (Sec. 2, Eq. 2) and of OOD detection: the one table of all that is measured.

Fractions in [0, 1], unrounded. A metric that has no samples is nan. A metric is a line of METRICS:
records, tables, CSV, page, plots and board take it from there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


class Measures(dict[str, float]):
    """Values of metrics by name, as items and as attributes; nan for one that was not measured."""

    def __getattr__(self, name: str) -> float:
        if name in METRICS:
            return self.get(name, math.nan)
        raise AttributeError(name)


@dataclass(frozen=True)
class Judged:
    """T test samples with what is true of them, and what a method said."""

    labels: NDArray[np.integer]  # (T,) true classes, -1 marks an OOD sample
    class_index: NDArray[np.integer]  # (T,)
    is_noise: NDArray[np.bool_] | None  # (T,) None: a score without a decision rule
    id_score: NDArray[np.floating]  # (T,) higher = more ID

    @cached_property
    def is_id(self) -> NDArray[np.bool_]:
        """Which samples are ID (T,)."""
        return self.labels >= 0

    @cached_property
    def noise(self) -> NDArray[np.bool_]:
        """Which samples are called noise (T,)."""
        assert self.is_noise is not None
        return self.is_noise

    @cached_property
    def is_right(self) -> NDArray[np.bool_]:
        """ID samples that are called clean and classified right, OOD samples called noise (T,)."""
        is_known = ~self.noise & (self.class_index == self.labels)
        return np.where(self.is_id, is_known, self.noise)

    @cached_property
    def acc_s(self) -> float:
        """Share of ID samples that are called clean and classified right."""
        return _mean(self.is_right[self.is_id])

    @cached_property
    def acc_n(self) -> float:
        """Share of OOD samples that are called noise."""
        return _mean(self.is_right[~self.is_id])

    @cached_property
    def hits(self) -> tuple[NDArray[np.integer], NDArray[np.integer]] | None:
        """ID and OOD samples at or above each distinct score; None where one kind is missing."""
        if self.is_id.all() or not self.is_id.any():
            return None
        order = np.argsort(-self.id_score, kind="stable")
        score, is_id = self.id_score[order], self.is_id[order]
        last_of_tie = np.append(score[1:] != score[:-1], True)
        return np.cumsum(is_id)[last_of_tie], np.cumsum(~is_id)[last_of_tie]

    @property
    def rates(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """True and false positive rates of the ROC curve, from (0, 0); ID is the positive class."""
        assert self.hits is not None
        tp, fp = self.hits
        return np.append(0, tp) / tp[-1], np.append(0, fp) / fp[-1]


def _auroc(samples: Judged) -> float:
    if samples.hits is None:
        return math.nan
    tpr, fpr = samples.rates
    return float(np.trapezoid(tpr, fpr))


def _fpr95(samples: Judged) -> float:
    """Share of OOD samples above the threshold that keeps 95 % of the ID samples."""
    if samples.hits is None:
        return math.nan
    tpr, fpr = samples.rates
    return float(fpr[np.searchsorted(tpr, 0.95)])


def _aupr(samples: Judged) -> float:
    """Average precision, ID positive."""
    if samples.hits is None:
        return math.nan
    tp, fp = samples.hits
    return float(np.sum(np.diff(samples.rates[0]) * (tp / (tp + fp))))


ACCURACIES, FLAGS, DETECTION = "accuracies", "flags", "detection"  # parts of a record


@dataclass(frozen=True)
class Metric:
    """One line of METRICS."""

    name: str
    head: str  # of its column
    group: str  # the part of a record that it is in; the first two are of decisions
    value: Callable[[Judged], float]
    reports: tuple[str, ...]  # the tables that show it, beside whatever shows all
    lower_is_better: bool = False
    is_percent: bool = True  # how it is shown; what is no share is shown as it is

    def text(self, value: float, std: float = math.nan) -> str:
        """A value as tables show it, with two digits; a dash where there is no sample."""
        if math.isnan(value):
            return "-"
        scale = 100 if self.is_percent else 1
        spread = "" if math.isnan(std) else f"±{scale * std:.2f}"
        return f"{scale * value:.2f}{spread}"


METRICS = {
    metric.name: metric
    for metric in (
        Metric("acc_s", "Acc_S", ACCURACIES, lambda s: s.acc_s, ("accuracy", "flags")),
        # Of the samples that someone should look at it is the recall.
        Metric("acc_n", "Acc_N", ACCURACIES, lambda s: s.acc_n, ("accuracy", "flags")),
        Metric(
            "acc_h", "Acc_H", ACCURACIES, lambda s: harmonic_mean(s.acc_s, s.acc_n),
            ("accuracy", "flags"),
        ),
        # Share of the flagged samples that are OOD; nan where none is flagged.
        Metric("precision", "Prec", FLAGS, lambda s: _mean(~s.is_id[s.noise]), ("flags",)),
        Metric("flagged", "Flagged", FLAGS, lambda s: _mean(s.noise), ("flags",)),
        Metric(
            "clean_flagged", "Clean flagged", FLAGS, lambda s: _mean(s.noise[s.is_id]), (),
            lower_is_better=True,
        ),
        Metric("auroc", "AUROC", DETECTION, _auroc, ("ood", "flags")),
        Metric("fpr95", "FPR95", DETECTION, _fpr95, ("ood", "flags"), lower_is_better=True),
        Metric("aupr", "AUPR", DETECTION, _aupr, ("ood",)),
    )
}  # fmt: skip
REPORTS = ("accuracy", "ood", "flags")  # the tables: what `--report` may be


def metrics_of(report: str) -> tuple[Metric, ...]:
    """The metrics that a table of REPORTS shows, in order."""
    return tuple(metric for metric in METRICS.values() if report in metric.reports)


def measure(samples: Judged) -> dict[str, Measures]:
    """All metrics of some samples, by the part of a record that they are in."""
    groups = {group: Measures() for group in (ACCURACIES, FLAGS, DETECTION)}
    for metric in METRICS.values():
        undecided = samples.is_noise is None and metric.group != DETECTION
        groups[metric.group][metric.name] = math.nan if undecided else metric.value(samples)
    return groups


def harmonic_mean(a: float, b: float) -> float:
    """2ab / (a + b), 0 where both are 0, nan where one is."""
    return 2 * a * b / (a + b) if a + b else a + b


def _mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else math.nan
