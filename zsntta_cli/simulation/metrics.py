"""The metrics of ZS-NTTA (Sec. 2, Eq. 2) and of OOD detection, all in one table.

Metrics are fractions in [0, 1], unrounded; a metric without samples is nan. Each is an entry of
METRICS, from which records, tables, CSV, page and plots take it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


class Measures(dict[str, float]):
    """Values of metrics by name, as items and as attributes; nan for a metric not measured."""

    def __getattr__(self, name: str) -> float:
        if name in METRICS:
            return self.get(name, math.nan)
        raise AttributeError(name)


Counts = NDArray[np.integer]
Rates = NDArray[np.floating]


@dataclass(frozen=True)
class Hits:
    """Positive and negative samples up to each of K distinct scores, the most positive first."""

    positive: Counts  # (K + 1,) from 0
    negative: Counts

    @property
    def curve(self) -> tuple[Rates, Rates]:
        """The ROC curve: false and true positive rates."""
        return self.negative / self.negative[-1], self.positive / self.positive[-1]

    def swapped(self) -> "Hits":
        """The hits of the opposite score, with the other kind as the positive one."""
        positive, negative = (
            (counts[-1] - counts)[::-1] for counts in (self.negative, self.positive)
        )
        return Hits(positive, negative)


@dataclass(frozen=True)
class Judged:
    """T test samples with their truth, and what a method decided."""

    labels: NDArray[np.integer]  # (T,) true classes, -1 marks an OOD sample
    class_index: NDArray[np.integer]  # (T,)
    is_noise: NDArray[np.bool_] | None  # (T,) None: a score without a decision rule
    id_score: NDArray[np.floating]  # (T,) higher = more ID
    is_probability: bool = False  # whether the score is one: of being ID
    class_probability: NDArray[np.floating] | None = None  # (T,) of the class, should it be ID

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
    def is_named(self) -> NDArray[np.bool_]:
        """Samples (T,) that are ID and classified right, whether or not they are called noise."""
        return self.class_index == self.labels

    @cached_property
    def named_id(self) -> NDArray[np.bool_]:
        """The same for the ID samples alone."""
        return self.is_named[self.is_id]

    @cached_property
    def is_right(self) -> NDArray[np.bool_]:
        """ID samples called clean and classified right, and OOD samples called noise (T,)."""
        return np.where(self.is_id, ~self.noise & self.is_named, self.noise)

    @cached_property
    def acc_s(self) -> float:
        """The share of ID samples that are called clean and classified right."""
        return _mean(self.is_right[self.is_id])

    @cached_property
    def acc_n(self) -> float:
        """The share of OOD samples that are called noise."""
        return _mean(self.is_right[~self.is_id])

    @cached_property
    def acc_h(self) -> float:
        """The harmonic mean of Acc_S and Acc_N."""
        return harmonic_mean(self.acc_s, self.acc_n)

    @cached_property
    def has_both(self) -> bool:
        """Whether there are samples of both kinds; else detection cannot be measured."""
        return bool(self.is_id.any()) and not self.is_id.all()

    @cached_property
    def _at_or_above(self) -> tuple[Counts, Counts, Counts]:
        """How many samples are at or above each distinct score, from 0 and the highest first.

        The counts are of ID samples, of OOD samples and of those that are named right.
        """
        order = np.argsort(self.id_score, kind="stable")[::-1]
        score = self.id_score[order]
        ends = np.flatnonzero(np.append(score[1:] != score[:-1], True))
        of_kinds = (self.is_id, ~self.is_id, self.is_named)
        is_id, is_ood, is_named = (
            np.append(0, np.cumsum(of_kind[order])[ends]) for of_kind in of_kinds
        )
        return is_id, is_ood, is_named

    @cached_property
    def hits(self) -> Hits | None:
        """The hits with ID samples as the positive ones; None if one kind is missing."""
        return Hits(*self._at_or_above[:2]) if self.has_both else None

    @cached_property
    def hits_ood(self) -> Hits | None:
        """The hits with OOD samples as the positive ones."""
        return self.hits and self.hits.swapped()

    @property
    def named_share(self) -> Rates:
        """The share of ID samples that are named right at or above each score."""
        share: Rates = self._at_or_above[2] / self.is_id.sum()
        return share

    @cached_property
    def best_acc_h(self) -> float:
        """The largest Acc_H over all thresholds on the ID score, each fixed for the stream."""
        if self.hits is None:
            return math.nan
        accepted = self.hits.negative
        acc_s, acc_n = self.named_share, (accepted[-1] - accepted) / accepted[-1]
        sums = acc_s + acc_n
        return float((2 * acc_s * acc_n / np.where(sums, sums, 1)).max())


def _auroc(samples: Judged) -> float:
    if samples.hits is None:
        return math.nan
    fpr, tpr = samples.hits.curve
    return float(np.trapezoid(tpr, fpr))


def _fpr95(hits: Hits | None) -> float:
    """The false positive rate at the first threshold with a true positive rate of 95 %."""
    if hits is None:
        return math.nan
    fpr, tpr = hits.curve
    return float(fpr[np.searchsorted(tpr, 0.95)])


def _aupr(hits: Hits | None) -> float:
    """Average precision (the area under the precision-recall curve)."""
    if hits is None:
        return math.nan
    precision = hits.positive[1:] / (hits.positive[1:] + hits.negative[1:])
    return float(np.sum(np.diff(hits.curve[1]) * precision))


def _oscr(samples: Judged) -> float:
    """The area under the curve of correct classification rate over false positive rate.

    It follows "Reducing Network Agnostophobia", arXiv 1811.04110, on a method's ID score: the share
    of ID samples named right and accepted over the share of OOD samples accepted, by trapezoids.
    """
    if samples.hits is None:
        return math.nan
    return float(np.trapezoid(samples.named_share, samples.hits.curve[0]))


_Probability = NDArray[np.floating] | None
_BINS = 15  # of equal width, each with its upper edge


def _id_probability(samples: Judged) -> _Probability:
    return samples.id_score if samples.is_probability else None


def _class_probability(samples: Judged) -> _Probability:
    """The class probabilities of the ID samples; for OOD samples no class is right."""
    probability = samples.class_probability
    return None if probability is None else probability[samples.is_id]


def _ece(
    probability: _Probability, came_true: NDArray[np.bool_], of_opposite: bool = False
) -> float:
    """Expected calibration error, arXiv 1706.04599: the average error of probabilities.

    In each bin, the mean probability is compared with the share of true events. `of_opposite`: the
    probability is that of the opposite event.
    """
    if probability is None or not len(probability):
        return math.nan
    foreseen = 1 - probability if of_opposite else probability
    cells = np.clip(np.ceil(foreseen * _BINS).astype(np.intp) - 1, 0, _BINS - 1)
    off = np.bincount(cells, foreseen - came_true, _BINS)
    return float(np.abs(off).sum() / len(probability))


def _brier(
    probability: _Probability, came_true: NDArray[np.bool_], of_opposite: bool = False
) -> float:
    """The mean squared difference of a probability to 1 for true events, to 0 for others."""
    if probability is None or not len(probability):
        return math.nan
    foreseen = 1 - probability if of_opposite else probability
    return float(np.sum((foreseen - came_true) ** 2) / len(probability))


ACCURACIES, FLAGS, DETECTION = "accuracies", "flags", "detection"  # parts of a record


@dataclass(frozen=True)
class Metric:
    """One entry of METRICS."""

    name: str
    head: str  # of its column
    group: str  # the part of a record that it is in; the first two are of decisions
    value: Callable[[Judged], float]
    reports: tuple[str, ...]  # the tables that show it, beside whatever shows all
    lower_is_better: bool = False
    is_percent: bool = True  # how it is shown; what is no share is shown as it is
    is_ranked: bool = True  # whether one value of it is better than another, all else unknown

    def text(self, value: float, std: float = math.nan) -> str:
        """A value as tables show it, with two digits; a dash without samples."""
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
            "acc_h", "Acc_H", ACCURACIES, lambda s: s.acc_h, ("accuracy", "flags", "open-set")
        ),
        # Share of the flagged samples that are OOD; nan where none is flagged.
        Metric("precision", "Prec", FLAGS, lambda s: _mean(~s.is_id[s.noise]), ("flags",)),
        Metric(
            "flagged", "Flagged", FLAGS, lambda s: _mean(s.noise), ("flags",), is_ranked=False,
        ),
        Metric(
            "clean_flagged", "Clean flagged", FLAGS, lambda s: _mean(s.noise[s.is_id]), (),
            lower_is_better=True,
        ),
        Metric("auroc", "AUROC", DETECTION, _auroc, ("ood", "flags")),
        # Two usual definitions, which can disagree on who is better: with ID or OOD as positive.
        Metric(
            "fpr95", "FPR95(ID+)", DETECTION, lambda s: _fpr95(s.hits), ("ood", "flags"),
            lower_is_better=True,
        ),
        Metric(
            "fpr95_ood", "FPR95(OOD+)", DETECTION, lambda s: _fpr95(s.hits_ood), ("ood", "flags"),
            lower_is_better=True,
        ),
        Metric("aupr", "AUPR(ID+)", DETECTION, lambda s: _aupr(s.hits), ("ood",)),
        Metric("aupr_ood", "AUPR(OOD+)", DETECTION, lambda s: _aupr(s.hits_ood), ("ood",)),
        # What a better threshold could win; below 0 where the online one beats any fixed one.
        Metric("best_acc_h", "Best Acc_H", DETECTION, lambda s: s.best_acc_h, ("open-set",)),
        Metric(
            "acc_h_gap", "Gap", ACCURACIES, lambda s: s.best_acc_h - s.acc_h, ("open-set",),
            lower_is_better=True, is_ranked=False,  # a bad score has no gap either
        ),
        # Share of ID samples that are classified right, whatever the detector says.
        Metric(
            "id_accuracy", "ID acc", DETECTION, lambda s: _mean(s.named_id), ("open-set",)
        ),
        Metric("oscr", "OSCR", DETECTION, _oscr, ("open-set",)),
        Metric(
            "ece_noise", "ECE(noise)", DETECTION,
            lambda s: _ece(_id_probability(s), ~s.is_id, True), ("calibration",),
            lower_is_better=True,
        ),
        Metric(
            "brier_noise", "Brier(noise)", DETECTION,
            lambda s: _brier(_id_probability(s), ~s.is_id, True), ("calibration",),
            lower_is_better=True,
        ),
        Metric(
            "ece_class", "ECE(class)", DETECTION,
            lambda s: _ece(_class_probability(s), s.named_id), ("calibration",),
            lower_is_better=True,
        ),
        Metric(
            "brier_class", "Brier(class)", DETECTION,
            lambda s: _brier(_class_probability(s), s.named_id), ("calibration",),
            lower_is_better=True,
        ),
    )
}  # fmt: skip
REPORTS = ("accuracy", "ood", "flags", "open-set", "calibration")  # what `--report` may be


def ranked_metrics() -> tuple[str, ...]:
    """The names of metrics of which one value is better than another."""
    return tuple(metric.name for metric in METRICS.values() if metric.is_ranked)


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
    """2ab / (a + b), 0 if both are 0, nan if one is nan."""
    return 2 * a * b / (a + b) if a + b else a + b


def _mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else math.nan
