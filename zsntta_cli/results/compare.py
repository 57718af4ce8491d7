"""Which of some rows is the best, and which differ from it over seeds.

**Marks**, for rows that saw the same samples:

- *Best* is the best mean; equal means share it. It is chosen among complete values of rows that
  compete (results/frame.py), if there are at least two.
- *Close* is a row that is not distinguishable from the best over seeds: Student's paired t test
  over the seeds that both have, five at least, two-sided, corrected for the number of rivals that
  were tested (Holm), does not find a difference at 5 %. From the best on, rows are marked down to
  the first that differs or cannot be tested; no row below it has a mark, so a row that varies much
  is never lifted above a better one.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter
from typing import TypeVar

from zsntta_cli.results.frame import Value, fold
from zsntta_cli.simulation.metrics import Metric

BEST, CLOSE = "best", "close"  # marks of a row, which may have none
LEVEL = 0.05  # a p-value below is significant
SEEDS_NEEDED = 5  # that two rows have in common
_ROUNDING = 1e-12  # by which equal means and differences may differ

BySeed = Mapping[int, float]  # a metric of one row
K = TypeVar("K", bound=Hashable)


def marks(values: Sequence[Value], metric: Metric) -> list[str]:
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
    apart = -math.inf  # the highest mean that differs from the best, or cannot be tested
    for i, p in holm(tests).items():
        if means[i] < level and (p is None or p < LEVEL):
            apart = max(apart, means[i])
    for i, mean in means.items():
        if mean >= level:
            found[i] = BEST
        elif mean > apart + _ROUNDING:
            found[i] = CLOSE
    return found


def paired_t_test(first: BySeed, second: BySeed) -> float | None:
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
    tested = [(p, key) for key, p in p_values.items() if p is not None]
    largest = 0.0
    for place, (p, key) in enumerate(sorted(tested, key=itemgetter(0))):
        largest = max(largest, min(1.0, p * (len(tested) - place)))
        adjusted[key] = largest
    return adjusted
