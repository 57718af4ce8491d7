"""Tests of whether one method is better than another: pure functions on counts.

Within a stream two methods saw the same samples, so only those samples count on which just one
method is right. If the methods are equal, either is right with probability 1/2, as in a coin throw:
this is McNemar's test for a share, and the same coins are used for Acc_H, which is no share. All
p-values are two-sided and exact. The streams of several seeds show the same images in other orders,
so their p-values depend on each other; twice their mean is a p-value under any dependence (Vovk and
Wang, "Combining p-values via averaging", arXiv 1212.4966).
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05  # a p-value below is significant
_DEVIATIONS = 7  # of a count of heads: what is beyond has a probability of 1e-11
_EQUAL = 1e-12  # differences of Acc_H that are rounding


@dataclass(frozen=True)
class SplitCounts:
    """Samples of one kind in a stream, counted by which of two methods is right."""

    first: int  # only the first
    second: int  # only the second
    both: int
    total: int

    @property
    def split(self) -> int:
        """The number of samples on which just one method is right."""
        return self.first + self.second


def mcnemar(first: int, second: int) -> float:
    """McNemar's exact test: `first` samples only the first method has right, `second` the other."""
    n, fewer = first + second, min(first, second)
    if first == second:
        return 1.0
    counts = np.arange(fewer + 1)
    return min(1.0, 2 * float(_probabilities(n, counts).sum()))


def swap_test(known: SplitCounts, noise: SplitCounts) -> float:
    """Test the difference of two Acc_H by random swaps of the samples on which one method is right.

    The p-value is the probability that random swaps give a difference as large as the one seen. It
    equals that of `mcnemar` if only samples of one kind are split.
    """
    seen = abs(_difference(known, noise, np.array(known.first), np.array(noise.first)))
    if seen <= _EQUAL:
        return 1.0
    heads, tails = _window(known.split), _window(noise.split)
    if _difference(known, noise, heads[-1:], tails[-1:]) < seen - _EQUAL:
        return 0.0
    beyond = np.append(np.cumsum(_probabilities(noise.split, tails)[::-1])[::-1], 0.0)
    first_enough = _least(known, noise, heads, tails, float(seen) - _EQUAL)
    return min(1.0, 2 * float(_probabilities(known.split, heads) @ beyond[first_enough]))


def _difference(
    known: SplitCounts, noise: SplitCounts, heads: NDArray[Any], tails: NDArray[Any]
) -> Any:
    """Acc_H of the first method minus that of the second, if the first has these samples right."""
    first = _harmonic((known.both + heads) / known.total, (noise.both + tails) / noise.total)
    second = _harmonic(
        (known.both + known.split - heads) / known.total,
        (noise.both + noise.split - tails) / noise.total,
    )
    return first - second


def _harmonic(a: Any, b: Any) -> Any:
    return 2 * a * b / np.maximum(a + b, np.finfo(float).tiny)


def _least(
    known: SplitCounts, noise: SplitCounts, heads: NDArray[Any], tails: NDArray[Any], wanted: float
) -> NDArray[Any]:
    """For each of `heads`, the smallest index in `tails` at which the difference is as wanted.

    The difference rises with both, so a binary search finds it, for all of `heads` at once.
    """
    low, high = np.zeros(len(heads), np.int64), np.full(len(heads), len(tails))
    while (open_ := low < high).any():
        middle = (low + high) // 2
        at = tails[np.minimum(middle, len(tails) - 1)]
        enough = _difference(known, noise, heads, at) >= wanted
        high = np.where(open_ & enough, middle, high)
        low = np.where(open_ & ~enough, middle + 1, low)
    return low


def _window(n: int) -> NDArray[np.int64]:
    """The counts of heads in n throws whose probability is not negligible."""
    reach = math.ceil(_DEVIATIONS * math.sqrt(n) / 2)
    return np.arange(max(0, n // 2 - reach), min(n, -(-n // 2) + reach) + 1)


def _probabilities(n: int, counts: NDArray[np.integer]) -> NDArray[np.floating]:
    """The probabilities of these counts of heads in n throws of a coin."""
    logs = _log_factorials(1 << n.bit_length())
    return np.exp(logs[n] - logs[counts] - logs[n - counts] - n * math.log(2))


@functools.lru_cache(maxsize=32)
def _log_factorials(most: int) -> NDArray[np.floating]:
    return np.array([math.lgamma(i + 1) for i in range(most + 1)])


def t_tails(t: float, freedom: int) -> float:
    """Both tails of Student's t with whole degrees of freedom (Abramowitz, Stegun: 26.7.3, 4)."""
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine, is_odd = math.cos(angle), freedom % 2
    term, total = (cosine if is_odd else 1.0), 0.0
    for i in range(2 if is_odd else 1, freedom, 2):
        total += term
        term *= cosine**2 * i / (i + 1)
    inner = math.sin(angle) * total
    return max(0.0, 1 - (2 / math.pi * (angle + inner) if is_odd else inner))


def combined(p_values: Sequence[float]) -> float:
    """Combine the p-values of several streams, valid under any dependence."""
    assert p_values
    return p_values[0] if len(p_values) == 1 else min(1.0, 2 * math.fsum(p_values) / len(p_values))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of a family of tests, corrected for their number (Holm 1979)."""
    adjusted, largest = [1.0] * len(p_values), 0.0
    for place, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, p_values[i] * (len(p_values) - place)))
        adjusted[i] = largest
    return adjusted
