"""What corrections say of the verdicts: accuracies of what was labelled, with intervals.

Wilson's score interval (E. B. Wilson, Probable inference, the law of succession, and statistical
inference, 1927) is of a share; it keeps its promise near 0 and 1 and of few images.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from zsntta_cli.report.review.corrections import Correction
from zsntta_cli.simulation.metrics import harmonic_mean

_LEVEL = 0.95


class Share(NamedTuple):
    """A share of images: how many of how many."""

    right: int
    of: int

    @property
    def value(self) -> float:
        """The fraction; nan of nothing."""
        return self.right / self.of if self.of else math.nan


class Interval(NamedTuple):
    """From where to where a fraction may be."""

    low: float
    high: float


class Judgement(NamedTuple):
    """What the verdicts are worth on the images that were labelled."""

    acc_s: Share  # clean ones that are called clean, of the right class
    acc_n: Share  # noise that is called noise
    precision: Share  # noise among what is called noise
    assumed: int  # clean ones called clean whose class nobody named: it counts as right

    @property
    def acc_h(self) -> float:
        """The harmonic mean of Acc_S and Acc_N; nan where one of them has no image."""
        return harmonic_mean(self.acc_s.value, self.acc_n.value)


def judgement(corrections: Sequence[Correction]) -> Judgement:
    """Judge verdicts by the truth; a class that nobody named counts as right."""
    clean = [one for one in corrections if not one.noise]
    noise = [one for one in corrections if one.noise]
    flagged = [one for one in corrections if one.said_noise]
    kept = [one for one in clean if not one.said_noise]
    right = sum(one.class_name in (None, one.said_class) for one in kept)
    return Judgement(
        Share(right, len(clean)),
        Share(sum(one.said_noise for one in noise), len(noise)),
        Share(sum(one.noise for one in flagged), len(flagged)),
        sum(one.class_name is None for one in kept),
    )


def wilson(share: Share, level: float = _LEVEL) -> Interval:
    """Wilson's score interval of a share; nan of nothing."""
    if not share.of:
        return Interval(math.nan, math.nan)
    p, n = share.value, share.of
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = p + z * z / (2 * n)
    width = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    whole = 1 + z * z / n
    low = 0.0 if not share.right else (middle - width) / whole
    return Interval(low, 1.0 if share.right == n else (middle + width) / whole)


def between_both(one: Share, other: Share, level: float = _LEVEL) -> Interval:
    """An interval of the harmonic mean of two shares, which grows with each of them.

    Both are within their own at the root of the level, so both at once at the level, as they are
    of different images: it covers at least as often, and is somewhat wide.
    """
    a, b = (wilson(share, math.sqrt(level)) for share in (one, other))
    return Interval(harmonic_mean(a.low, b.low), harmonic_mean(a.high, b.high))
