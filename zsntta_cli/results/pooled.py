"""Compare rows by their seeds, with an error that is pooled over rows.

Three to five seeds tell little about one row's spread: judged by its own spread, a row that varies
a lot is never worse than the best. So the seeds that the rows have in common are taken as blocks
(two-way analysis of variance, row + seed): the residual mean square MS of R rows and S seeds has (R
- 1)(S - 1) degrees of freedom, and the difference of two means the standard error sqrt(2 MS / S).

This assumes that the rows spread alike. Rows that do not are left out of the pool: otherwise one
row of large spread would make all others look equal, and rows without any randomness would make all
others look different. Cochran's C removes the widest row, one by one, while it is an outlier at 1 %
(as ISO 5725-2 does); rows that do not vary at all are removed, too. A difference to such a row is
judged by the two rows alone, which is Student's paired t test.
"""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from zsntta_cli.results.significance import t_tails

SEEDS_NEEDED = 5  # that two rows have in common
_OUTLIER = 0.01  # a p-value of Cochran's C below which a row's spread is none of the others'
_EQUAL = 1e-12  # differences of a metric that are rounding

K = TypeVar("K", bound=Hashable)


def compare_by_seeds(by_row: Mapping[K, Mapping[int, float]], best: K) -> dict[K, float]:
    """The two-sided p-value of each row's difference to the best, for rows that can be compared.

    `by_row`: a metric by seed. Rows with enough seeds in common with the best are compared on the
    seeds that all of them have.
    """
    rows = [row for row in by_row if len(by_row[row].keys() & by_row[best].keys()) >= SEEDS_NEEDED]
    seeds = sorted(set.intersection(*(set(by_row[row]) for row in rows))) if rows else []
    if len(seeds) < SEEDS_NEEDED:
        return {}
    values = {row: [by_row[row][seed] for seed in seeds] for row in rows}
    alike = spread_alike(values)
    pooled_error = _error([values[row] for row in alike]) if len(alike) > 1 else _NO_ERROR
    p_values = {}
    for row in rows:
        pair = values[best], values[row]
        error = pooled_error if {best, row} <= alike else _error(pair)
        if row != best:
            p_values[row] = _p_value(*pair, error)
    return p_values


def spread_alike(values: Mapping[K, Sequence[float]]) -> set[K]:
    """The rows that vary over seeds, without outliers; their error may be pooled."""
    all_variances = np.var(list(values.values()), axis=1, ddof=1).tolist()
    variances = {row: v for row, v in zip(values, all_variances, strict=True) if v > _EQUAL**2}
    freedom = len(next(iter(values.values()))) - 1
    while len(variances) > 2 and cochran(variances.values(), freedom) < _OUTLIER:
        del variances[max(variances, key=variances.__getitem__)]
    return set(variances)


def cochran(variances: Collection[float], freedom: int) -> float:
    """The p-value of the largest of some variances, each with these degrees of freedom.

    The share of one variance in their sum is Beta(freedom / 2, the others' freedom / 2).
    """
    a, b = freedom / 2, (len(variances) - 1) * freedom / 2
    share, steps = max(variances) / math.fsum(variances), 1000
    x = share + (1 - share) * (np.arange(steps) + 0.5) / steps
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    density = np.exp(scale + (a - 1) * np.log(x) + (b - 1) * np.log1p(-x))
    return min(1.0, len(variances) * float(density.mean()) * (1 - share))


class _Error(NamedTuple):
    """The residual of the rows: what is left after a row's effect and a seed's effect."""

    mean_square: float
    freedom: int


_NO_ERROR = _Error(0.0, 0)


def _error(rows: Sequence[Sequence[float]]) -> _Error:
    """The residual mean square of two rows or more (R, S)."""
    values = np.array(rows)
    residuals = values - values.mean(1, keepdims=True) - values.mean(0) + values.mean()
    freedom = (values.shape[0] - 1) * (values.shape[1] - 1)
    return _Error(float((residuals**2).sum()) / freedom, freedom)


def _p_value(first: Sequence[float], second: Sequence[float], error: _Error) -> float:
    """The p-value of Student's t for two means; without an error 1 if they are equal, else 0."""
    difference = (math.fsum(first) - math.fsum(second)) / len(first)
    if error.mean_square <= _EQUAL**2:
        return 1.0 if abs(difference) <= _EQUAL else 0.0
    return t_tails(difference / math.sqrt(2 * error.mean_square / len(first)), error.freedom)
