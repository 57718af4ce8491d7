"""Means over seeds, averages over sets, and which of several values are the best.

- *Best* is the best mean; equal means share it. It is chosen among complete values of rows that
  compete, if there are at least two.
- *Close* is a row that is not distinguishable from the best over seeds: Student's paired t test
  over the seeds that both have, five at least, two-sided, corrected for the number of rivals that
  were tested (Holm), does not find a difference at 5 %. From the best on, rows are marked down to
  the first that differs or cannot be tested, so a row that varies much is never lifted above a
  better one.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from zsntta_cli.simulation.metrics import Metric  # it imports NumPy

SEEDS, SETS = "seeds", "sets"  # whose standard deviation the ± of an average is
BEST, CLOSE = "best", "close"  # marks of a row, which may have none
LEVEL = 0.05  # a p-value below is significant
SEEDS_NEEDED = 5  # that two rows have in common
_ROUNDING = 1e-12  # by which equal means and differences may differ
K = TypeVar("K", bound=Hashable)


class Value(NamedTuple):
    """A mean over seeds, or an average over sets, of a metric as a fraction."""

    mean: float  # nan where there is nothing
    std: float  # sample standard deviation over seeds; nan of one seed
    by_seed: Mapping[int, float]  # what it is the mean of
    is_whole: bool = True  # of finished runs, and of an average: of all sets of the table
    lacks: str = ""  # why an average is none, in words


NOTHING = Value(math.nan, math.nan, {}, is_whole=False)


def fold(by_seed: Mapping[int, float]) -> Value:
    """The mean over seeds and its sample standard deviation; NOTHING if there is no seed."""
    if not by_seed:
        return NOTHING
    mean, std = fmean(by_seed.values()), math.nan
    if len(by_seed) > 1:
        squares = math.fsum([(value - mean) ** 2 for value in by_seed.values()])
        std = math.sqrt(squares / (len(by_seed) - 1))
    return Value(mean, std, by_seed)


def average(by_set: Mapping[str, Mapping[int, float]], spread: str = SEEDS) -> Value:
    """The mean over sets of a metric by seed, averaged over the seeds that all sets share.

    `spread`: the ± is the deviation of the averages over SEEDS, or, as in the paper, the mean of
    the deviations of the SETS.
    """
    having = [name for name, by_seed in by_set.items() if by_seed]
    if not by_set or len(having) < len(by_set):
        which = f" ({', '.join(having)})" * bool(having)
        return NOTHING._replace(lacks=f"{len(having)} of {len(by_set)} sets{which}")
    seeds = sorted(set.intersection(*map(set, by_set.values())))
    if not seeds:
        return NOTHING._replace(lacks="no seed that all of its sets share")
    value = fold({seed: fmean([of[seed] for of in by_set.values()]) for seed in seeds})
    if spread == SETS:
        of_sets = [fold({seed: of[seed] for seed in seeds}).std for of in by_set.values()]
        value = value._replace(std=fmean(of_sets))
    return value


def marks(values: Sequence[Value], metric: "Metric") -> list[str]:
    """The marks of values on the same samples, BEST, CLOSE or none.

    A row that does not compete has NOTHING here.
    """
    sign = -1 if metric.lower_is_better else 1
    means = {i: sign * v.mean for i, v in enumerate(values) if v.is_whole and v.mean == v.mean}
    found = [""] * len(values)
    if len(means) < 2 or not metric.is_ranked:
        return found
    level = max(means.values()) - _ROUNDING
    best = next(i for i, mean in means.items() if mean >= level)
    tests = {i: paired_t_test(values[i].by_seed, values[best].by_seed) for i in means if i != best}
    differing = [i for i, p in holm(tests).items() if p is None or p < LEVEL]
    apart = max((means[i] for i in differing if means[i] < level), default=-math.inf)
    for i, mean in means.items():
        found[i] = BEST if mean >= level else CLOSE if mean > apart + _ROUNDING else ""
    return found


def paired_t_test(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """The two-sided p-value of Student's paired t test; None with too few seeds in common.

    Differences that do not vary over seeds have a p of 0, or of 1 if they are zero.
    """
    differences = [value - second[seed] for seed, value in first.items() if seed in second]
    if len(differences) < SEEDS_NEEDED:
        return None
    mean, std, *_ = fold(dict(enumerate(differences)))
    error = std / math.sqrt(len(differences))
    if error <= _ROUNDING:
        return 1.0 if abs(mean) <= _ROUNDING else 0.0
    from scipy.special import stdtr  # a fifth of a second, and needed with five seeds alone

    return 2 * float(stdtr(len(differences) - 1, -abs(mean) / error))


def holm(p_values: Mapping[K, float | None]) -> dict[K, float | None]:
    """The p-values of a family of tests, corrected for their number (Holm 1979)."""
    adjusted: dict[K, float | None] = dict.fromkeys(p_values)
    tested = sorted((p, i, key) for i, (key, p) in enumerate(p_values.items()) if p is not None)
    largest = 0.0
    for place, (p, _, key) in enumerate(tested):
        largest = adjusted[key] = max(largest, min(1.0, p * (len(tested) - place)))
    return adjusted
