"""How far two perfect runs of one experiment differ: the variances that a verdict allows for.

All ID samples take part in a stream, once; which OOD samples do is a choice, the paper's a list of
its own and ours another. Light: no NumPy. Variances are of fractions.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zsntta_cli import datasets

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record

_CONFIDENCE = 0.9545  # of a verdict: that of two standard deviations of a normal distribution


@dataclass(frozen=True)
class Variance:
    """A variance, and on how many degrees of freedom it is known."""

    value: float = 0.0
    freedom: float = math.inf

    def times(self, factor: float) -> "Variance":
        """The variance of a multiple, whose factor's square is given."""
        return Variance(self.value * factor, self.freedom)

    @property
    def deviations(self) -> float:
        """How many standard deviations hold 95.45 % of the differences: Student's t, or 2."""
        if math.isinf(self.freedom) or math.isnan(self.freedom):
            return 2.0
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, (1 + _CONFIDENCE) / 2))


def total(variances: Iterable[Variance]) -> Variance:
    """The variance of a sum of independent parts, with Welch's and Satterthwaite's freedom."""
    parts = [part for part in variances if part.value]
    value = math.fsum(part.value for part in parts)
    uncertain = math.fsum(part.value**2 / part.freedom for part in parts)
    return Variance(value, value**2 / uncertain if uncertain else math.inf)


def pooled(variances: Iterable[Variance]) -> Variance:
    """The mean of several variances, each of which counts by its freedom; nan of none."""
    parts = list(variances)
    freedom = math.fsum(part.freedom for part in parts)
    if not freedom:
        return Variance(math.nan, 0)
    return Variance(math.fsum(p.value * p.freedom for p in parts) / freedom, freedom)


def chosen_share(drawn: int, pool: int) -> float:
    """The factor of a single sample's variance in that of a mean over `drawn` samples of a pool.

    A stream has the whole pool as often as it goes, and then a random rest r of its N samples,
    without replacement: only that rest varies. (r/n)² · 1/r · (1 - r/N) · N/(N-1).
    """
    rest = drawn % pool if pool else 0
    if not rest:
        return 0.0
    return (rest / drawn) ** 2 / rest * (1 - rest / pool) * pool / (pool - 1)


def choice_variance(record: "Record", metric: str) -> float:
    """The variance of a metric of a run by which OOD samples take part; nan of a metric without.

    With the ID samples given, Acc_N and FPR95(ID+) are shares of the OOD samples, AUROC is the mean
    of their placements among the ID samples (DeLong et al. 1988), whose variance is taken from
    AUROC itself (Hanley and McNeil 1982); Acc_H follows Acc_N by the delta method.
    """
    single = _SINGLE.get(metric)
    if single is None:
        return math.nan
    return _of_choice(record) * single(record) if record.settings.ood_set else 0.0


def is_chosen(record: "Record") -> bool:
    """Whether the OOD samples of a run are some of several that might have been taken."""
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
    """The variance of the placements that two exponential distributions of scores would have."""
    auroc = record.metric("auroc")
    return max(auroc / (2 - auroc), 2 * auroc**2 / (1 + auroc)) - auroc**2


# The variance of what a metric is the mean of, for a single OOD sample.
_SINGLE: "dict[str, Callable[[Record], float]]" = {
    "acc_s": lambda _: 0.0,
    "acc_n": lambda record: _of_share(record.metric("acc_n")),
    "acc_h": _of_harmonic_mean,
    "auroc": _of_placements,
    "fpr95": lambda record: _of_share(record.metric("fpr95")),
}
