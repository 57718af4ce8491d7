"""What corrections say about the verdicts: accuracies with intervals, as text.

Wilson's score interval (E. B. Wilson, Probable inference, the law of succession, and statistical
inference, 1927) is for a share; it is reliable near 0 and 1 and for few images.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

from zsntta_cli.errors import counted
from zsntta_cli.report.review.corrections import Correction
from zsntta_cli.simulation.metrics import harmonic_mean

_LEVEL = 0.95


class Share(NamedTuple):
    """A share of images: how many of how many."""

    right: int
    of: int

    @property
    def value(self) -> float:
        """The fraction; nan without images."""
        return self.right / self.of if self.of else math.nan


class Interval(NamedTuple):
    """The ends of an interval of a fraction."""

    low: float
    high: float


class Judgement(NamedTuple):
    """The accuracies of the verdicts on the images that were labelled."""

    acc_s: Share  # clean ones that are called clean, of the right class
    acc_n: Share  # noise that is called noise
    precision: Share  # noise among what is called noise
    assumed: int  # clean ones called clean whose class nobody named: it counts as right

    @property
    def acc_h(self) -> float:
        """The harmonic mean of Acc_S and Acc_N; nan where one of them has no image."""
        return harmonic_mean(self.acc_s.value, self.acc_n.value)


def judgement(corrections: Sequence[Correction]) -> Judgement:
    """Judge verdicts by the truth; a class that nobody named counts as right.

    Corrections of images that a person had already judged are left out: they do not test verdicts.
    """
    corrections = [image for image in corrections if not image.is_repeated]
    clean = [image for image in corrections if not image.noise]
    noise = [image for image in corrections if image.noise]
    flagged = [image for image in corrections if image.said_noise]
    kept = [image for image in clean if not image.said_noise]
    return Judgement(
        Share(sum(image.class_name in (None, image.said_class) for image in kept), len(clean)),
        Share(sum(image.said_noise for image in noise), len(noise)),
        Share(sum(image.noise for image in flagged), len(flagged)),
        sum(image.class_name is None for image in kept),
    )


def wilson(share: Share, level: float = _LEVEL) -> Interval:
    """Wilson's score interval of a share; nan without images."""
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
    """An interval of the harmonic mean of two shares, which increases with each of them.

    Each share lies within its own interval with the square root of the level. The shares are of
    different images, so both do at once with the level. The interval covers at least as often, and
    is somewhat wide.
    """
    a, b = (wilson(share, math.sqrt(level)) for share in (one, other))
    return Interval(harmonic_mean(a.low, b.low), harmonic_mean(a.high, b.high))


def table(judged: Judgement) -> str:
    """Accuracies in percent, with their intervals and numbers of images."""
    both = between_both(judged.acc_s, judged.acc_n)
    lines = [
        f"{'':<10}{'%':>7}  {'95 % interval':>15}",
        _share_line("Acc_S", judged.acc_s),
        _share_line("Acc_N", judged.acc_n),
        _line("Acc_H", judged.acc_h, both),
        _share_line("precision", judged.precision),
    ]
    return "\n".join(lines)


def _share_line(name: str, share: Share) -> str:
    return f"{_line(name, share.value, wilson(share))}  {share.right:,} of {share.of:,}"


def _line(name: str, value: float, interval: Interval) -> str:
    if math.isnan(value):
        return f"{name:<10}{'–':>7}  {'–':>15}"
    between = f"{100 * interval.low:.2f} – {100 * interval.high:.2f}"
    return f"{name:<10}{100 * value:>7.2f}  {between:>15}"


def notes(judged: Judgement, replaced: int, repeated: int = 0) -> Iterator[str]:
    """The limits of the table; `replaced` lines were replaced by later ones.

    `repeated` is the number of images that a person had judged before.
    """
    clean, noise = judged.acc_s.of, judged.acc_n.of
    yield (
        f"{counted(clean + noise, 'image')} labelled, {clean:,} clean and {noise:,} noise. The "
        f"figures describe these images alone: borderline and suspicious images are harder than "
        f"the folder."
    )
    if judged.assumed:
        yield (
            f"{counted(judged.assumed, 'image')} labelled clean without another class: the one "
            f"that was said counts as right."
        )
    if repeated:
        yield (
            f"{counted(repeated, 'image')} left out: what was said of them was a person's word "
            f"already."
        )
    if replaced:
        yield f"{replaced:,} of the lines gave way to a later one of the same image."
