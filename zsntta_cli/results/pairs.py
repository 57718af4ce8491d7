"""Methods compared over ID-OOD pairs: which is better where, and whether by more than chance.

The unit here is the pair, not the seed: seeds show the same images in other orders, so a pair's
values are averaged over its seeds first, and each pair counts once. Two methods are compared by
Wilcoxon's signed-rank test (1945). Pairs that share an ID set share its images (corruptions and
splits of a set are that set), so all signs of an ID set are flipped together, as Rosner, Glynn and
Lee do with clusters ("The Wilcoxon signed rank test for paired comparisons of clustered data",
Biometrics 62, 2006); where no two pairs share one, this is Wilcoxon's own test. Differences of zero
are ranked and have no sign (Pratt 1959), equal ones share their mean rank, and p is exact given
these ranks. No test here accounts for OOD sets that pairs share.

Many methods are compared by Friedman's test on their ranks on each pair and by Nemenyi's critical
difference (Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006).
"""

import functools
import math
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.names import SetName
from zsntta_cli.results.frame import average, fold, mean_ranks
from zsntta_cli.results.significance import LEVEL, holm
from zsntta_cli.simulation.metrics import Metric

FEWEST = 6  # ID sets, or pairs that share none: of five signs, p is 2 / 2^5 = 6.25 % at the least
_DIGITS = 12  # of a difference: what is beyond is the noise of a sum, and would break a tie
_MOST_STEPS = 10**8  # of the exact distribution: some tenths of a second; that of 44 pairs has 10^5

# Studentized ranges of infinite freedom over the root of 2, at 5 %, of 2, 3, 4 … methods: Demšar's
# table 5(a), which ends at 10, and the same quantiles behind it.
_NEMENYI = (
    1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164,
    3.219, 3.268, 3.313, 3.354, 3.391, 3.426, 3.458, 3.489, 3.517, 3.544,
)  # fmt: skip
MOST_RANKED = len(_NEMENYI) + 1  # methods

_SPLIT = re.compile(r"-\d+-s\d+-id$")  # what names of splits of classes end in

Pair = tuple[str, str]  # ID set, OOD set; CLEAN of a clean stream
ByPair = Mapping[Pair, Mapping[int, float]]  # a metric of one method: by pair, then by seed
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class PairComparison:
    """How a method compares to another over pairs; above 0 it is better."""

    differences: Mapping[Pair, float]  # the method's value minus the other's, turned to better
    p: float | None  # None where no test over pairs can reach 5 %
    adjusted: float | None = None  # for the number of comparisons (Holm)

    @property
    def mean(self) -> float:
        """The mean difference over pairs; nan if they have none in common."""
        return fmean(self.differences.values()) if self.differences else math.nan

    @property
    def wins(self) -> int:
        """The number of pairs on which it is better."""
        return sum(value > 0 for value in self.differences.values())

    @property
    def losses(self) -> int:
        """The number of pairs on which it is worse."""
        return sum(value < 0 for value in self.differences.values())

    @property
    def ties(self) -> int:
        """The number of pairs on which both are equal."""
        return len(self.differences) - self.wins - self.losses


def best_of(by_row: Mapping[K, ByPair], metric: Metric) -> K | None:
    """The method with the best average over all pairs, if there is one."""
    sign = -1 if metric.lower_is_better else 1
    means = {row: sign * average(by_pair).mean for row, by_pair in by_row.items()}
    whole = {row: mean for row, mean in means.items() if not math.isnan(mean)}
    return max(whole, key=whole.__getitem__, default=None)


def against_best(best: K, by_row: Mapping[K, ByPair], metric: Metric) -> dict[K, PairComparison]:
    """Compare all others with the method that looks best.

    The best was chosen by the same values, which implies a comparison of every two methods, so p is
    corrected for the number of all these comparisons. Corrected for the number of rivals alone, one
    family in ten of equal methods would have a "worse" one.
    """
    pairings = list(combinations(by_row, 2))
    every = _adjust({(a, b): compare(by_row[a], by_row[b], metric) for a, b in pairings})
    return {
        row: every[row, best] if (row, best) in every else _turn(every[best, row])
        for row in by_row
        if row != best
    }


def against(reference: K, by_row: Mapping[K, ByPair], metric: Metric) -> dict[K, PairComparison]:
    """Compare all others with a method chosen beforehand; p is corrected for their number."""
    rivals = {row: by_pair for row, by_pair in by_row.items() if row != reference}
    return _adjust({r: compare(of, by_row[reference], metric) for r, of in rivals.items()})


def compare(values: ByPair, others: ByPair, metric: Metric) -> PairComparison:
    """Compare two methods over the pairs and seeds that both have."""
    sign = -1 if metric.lower_is_better else 1
    differences = {}
    for pair, by_seed in values.items():
        other = others.get(pair, {})
        steps = [sign * (value - other[seed]) for seed, value in by_seed.items() if seed in other]
        if steps and not math.isnan(mean := fmean(steps)):
            differences[pair] = round(mean, _DIGITS)
    can_tell = count_id_sets(differences) >= FEWEST
    return PairComparison(differences, signed_rank_test(differences) if can_tell else None)


def _turn(comparison: PairComparison) -> PairComparison:
    """The same comparison, seen from the other method."""
    turned = {pair: -value for pair, value in comparison.differences.items()}
    return replace(comparison, differences=turned)


def _adjust(family: Mapping[K, PairComparison]) -> dict[K, PairComparison]:
    p_values = {key: one.p for key, one in family.items() if one.p is not None}
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return {key: replace(one, adjusted=adjusted.get(key)) for key, one in family.items()}


@functools.cache
def image_source(id_set: str) -> str:
    """The set whose images an ID set shows: corruptions and splits show another set's images."""
    base = _SPLIT.sub("", SetName.parse(id_set).base)
    return base.removesuffix("-c") if base in CATALOGUE else base


def count_id_sets(pairs: Collection[Pair]) -> int:
    """The number of ID sets with different images among the pairs: as many signs are flipped."""
    return len({image_source(id_set) for id_set, _ in pairs})


def least_p(pairs: Collection[Pair]) -> float:
    """The smallest two-sided p-value that a test over some pairs can have: all signs are alike."""
    return min(1.0, 2.0 ** (1 - count_id_sets(pairs)))


# The signed-rank test.


def signed_rank_test(differences: Mapping[Pair, float]) -> float:
    """The two-sided p-value of differences on pairs, all signs of an ID set flipped together."""
    sums: dict[str, int] = {}
    ranks = signed_ranks(list(differences.values()))
    for (id_set, _), rank in zip(differences, ranks, strict=True):
        source = image_source(id_set)
        sums[source] = sums.get(source, 0) + int(rank)
    return sign_flip_test(list(sums.values()))


def signed_ranks(differences: Sequence[float]) -> NDArray[np.int64]:
    """Twice the mean rank of each size, with its sign; zeros are ranked and have no sign."""
    values = np.asarray(differences, float)
    _, places, counts = np.unique(np.abs(values), return_inverse=True, return_counts=True)
    doubled = 2 * np.cumsum(counts) - counts + 1
    ranks: NDArray[np.int64] = (np.sign(values) * doubled[places]).astype(np.int64)
    return ranks


def sign_flip_test(scores: Sequence[int]) -> float:
    """How often random signs give a sum as far from 0 as these scores do: exact, two-sided.

    For hundreds of scores the sum is nearly normal, and p is that of the normal distribution.
    """
    sizes = [abs(score) for score in scores if score]
    total, seen = sum(sizes), abs(sum(scores))
    if len(sizes) * total > _MOST_STEPS:
        return math.erfc(seen / math.sqrt(2 * math.fsum(size * size for size in sizes)))
    shares = np.zeros(total + 1)  # of each sum of the scores whose sign is a plus
    shares[0] = 1.0
    for size in sizes:
        moved = shares / 2
        moved[size:] += shares[: total + 1 - size] / 2
        shares = moved
    return min(1.0, float(shares[np.abs(2 * np.arange(total + 1) - total) >= seen].sum()))


# Many methods at once.


@dataclass(frozen=True)
class RankTest(Generic[K]):
    """Friedman's test, and Nemenyi's critical difference of two mean ranks."""

    mean_ranks: Mapping[K, float]  # over pairs, 1 is the best; the best first
    weight: float  # as how many pairs they count: those of an ID set as one
    p: float
    critical_difference: float

    @property
    def groups(self) -> list[tuple[K, ...]]:
        """The longest runs of neighbouring ranks that do not differ significantly.

        All are one group if Friedman's test finds no difference.
        """
        if self.p >= LEVEL:
            return [tuple(self.mean_ranks)]
        rows = list(self.mean_ranks)
        ends = [self._end(rows, start) for start in range(len(rows))]
        return [
            tuple(rows[start : end + 1])
            for start, end in enumerate(ends)
            if end > start and (start == 0 or end > ends[start - 1])
        ]

    def _end(self, rows: Sequence[K], start: int) -> int:
        """The index of the last row that does not differ from the row at `start`."""
        most = self.mean_ranks[rows[start]] + self.critical_difference
        return max(i for i, row in enumerate(rows) if self.mean_ranks[row] < most or i == start)


def rank_test(by_row: Mapping[K, ByPair], metric: Metric) -> RankTest[K] | None:
    """The mean ranks of methods on the pairs that all have, tested; None if there are too few.

    Ranks on pairs of one ID set depend on each other, at most as if they were one pair: pairs of
    which nᵢ share the i-th ID set count as (Σ nᵢ)² / Σ nᵢ² pairs, which is the number of ID sets if
    all have equally many.
    """
    means = {row: dict(_means(by_pair)) for row, by_pair in by_row.items()}
    by_pair = mean_ranks(means, metric)
    ranks = np.array([list(of_row.values()) for of_row in by_pair.values()], float)
    pairs = list(next(iter(by_pair.values()), {}))
    if not 3 <= len(ranks) <= MOST_RANKED or count_id_sets(pairs) < FEWEST:
        return None
    weight = _weight(pairs)
    order = sorted(zip(by_pair, ranks.mean(axis=1).tolist(), strict=True), key=lambda one: one[1])
    width = critical_value(len(ranks)) * math.sqrt(len(ranks) * (len(ranks) + 1) / (6 * weight))
    return RankTest(dict(order), weight, _friedman(ranks, weight), width)


def critical_value(methods: int) -> float:
    """Nemenyi's critical value at 5 % for a number of methods."""
    return _NEMENYI[methods - 2]


def _means(by_pair: ByPair) -> list[tuple[Pair, float]]:
    """The mean over seeds on each pair, with the rounding error of its sum removed."""
    return [(pair, round(fold(by_seed).mean, _DIGITS)) for pair, by_seed in by_pair.items()]


def _weight(pairs: Sequence[Pair]) -> float:
    counts = np.unique([image_source(id_set) for id_set, _ in pairs], return_counts=True)[1]
    return float(counts.sum() ** 2 / (counts**2).sum())


def _friedman(ranks: NDArray[Any], weight: float) -> float:
    """The p-value of ranks (methods, pairs) that count as `weight` pairs, corrected for ties."""
    from scipy.special import chdtrc

    methods = len(ranks)
    apart = ranks - (methods + 1) / 2
    spread = (apart**2).sum(axis=0).mean()
    if not spread:
        return 1.0
    statistic = (methods - 1) * weight * (apart.mean(axis=1) ** 2).sum() / spread
    return float(chdtrc(methods - 1, statistic))
