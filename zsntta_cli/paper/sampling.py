"""The variances of two perfect runs of one experiment, which a verdict allows for.

All ID samples are in a stream once. Which OOD samples are in it is a random choice, and the paper's
choice differs from ours. Variances are those of fractions. This module does not import NumPy.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zsntta_cli import datasets

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record

_CONFIDENCE = 0.9545  # of a verdict: as two standard deviations of a normal distribution


@dataclass(frozen=True)
class Variance:
    """A variance, and the degrees of freedom of its estimate."""

    value: float = 0.0
    freedom: float = math.inf

    def times(self, factor: float) -> "Variance":
        """The variance of a multiple; `factor` is the square of the multiple's factor."""
        return Variance(self.value * factor, self.freedom)

    @property
    def deviations(self) -> float:
        """The number of standard deviations that hold 95.45 % of differences: Student's t, or 2."""
        if math.isinf(self.freedom) or math.isnan(self.freedom):
            return 2.0
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, (1 + _CONFIDENCE) / 2))


UNKNOWN_VARIANCE = Variance(math.nan, 0)


def total(variances: Iterable[Variance]) -> Variance:
    """The variance of a sum of independent parts, with Welch and Satterthwaite's freedom.

    It is unknown if the variance of a part is unknown.
    """
    parts = [part for part in variances if part.value]
    value = math.fsum(part.value for part in parts)
    if math.isnan(value):
        return UNKNOWN_VARIANCE
    uncertain = math.fsum(part.value**2 / part.freedom for part in parts)
    return Variance(value, value**2 / uncertain if uncertain else math.inf)


def pooled(variances: Iterable[Variance]) -> Variance:
    """The mean of several variances, weighted by their degrees of freedom; nan of none."""
    parts = list(variances)
    freedom = math.fsum(part.freedom for part in parts)
    if not freedom:
        return UNKNOWN_VARIANCE
    return Variance(math.fsum(p.value * p.freedom for p in parts) / freedom, freedom)


def chosen_share(drawn: int, pool: int) -> float:
    """The factor from a single sample's variance to that of a mean over `drawn` samples of a pool.

    A stream of n samples has the whole pool of N as often as it fits, and then r samples that are
    drawn without replacement. Only these vary: (r/n)² · 1/r · (1 - r/N) · N/(N-1).
    """
    rest = drawn % pool if pool else 0
    if not rest:
        return 0.0
    return (rest / drawn) ** 2 / rest * (1 - rest / pool) * pool / (pool - 1)


def choice_variance(record: "Record", metric: str) -> float:
    """The variance of a run's metric by the choice of OOD samples; nan for other metrics.

    For fixed ID samples, Acc_N and FPR95(ID+) are shares of the OOD samples, and AUROC is the mean
    of their placements among the ID samples (DeLong et al. 1988). The variance of Acc_H follows
    from that of Acc_N by the delta method.
    """
    single = _SINGLE.get(metric)
    if single is None:
        return math.nan
    return _of_choice(record) * single(record) if record.settings.ood_set else 0.0


def is_chosen(record: "Record") -> bool:
    """Whether the OOD samples of a run are a random choice of those in the set."""
    return bool(record.settings.ood_set) and _of_choice(record) > 0


def _of_choice(record: "Record") -> float:
    ood_set = str(record.settings.ood_set)
    return chosen_share(record.counts["ood"], datasets.known(ood_set).images)


def _of_share(share: float) -> float:
    return share * (1 - share)


def _of_harmonic_mean(record: "Record") -> float:
    acc_s, acc_n = record.metric("acc_s"), record.metric("acc_n")
    slope = 2 * acc_s**2 / (acc_s + acc_n) ** 2 if acc_s + acc_n else 0.0
    return slope**2 * _of_share(acc_n)


def _of_placements(record: "Record") -> float:
    """The variance of the placements, or that of exponential scores if a record lacks it.

    The latter (Hanley and McNeil 1982) only needs AUROC, and is up to three times as large.
    """
    std, auroc = record.placement_std, record.metric("auroc")
    if not math.isnan(std):
        return std**2
    return max(auroc / (2 - auroc), 2 * auroc**2 / (1 + auroc)) - auroc**2


# The variance of a single OOD sample's value, of which a metric is the mean.
_SINGLE: "dict[str, Callable[[Record], float]]" = {
    "acc_s": lambda _: 0.0,
    "acc_n": lambda record: _of_share(record.metric("acc_n")),
    "acc_h": _of_harmonic_mean,
    "auroc": _of_placements,
    "fpr95": lambda record: _of_share(record.metric("fpr95")),
}
