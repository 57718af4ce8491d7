"""Which images are called noise: by the method's own rule, or as many as one wants to look at.

Thresholds differ from image to image, so images are ranked by their margin, score less threshold.
To flag more or fewer, all thresholds move by one amount: ranks stay.
"""

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.errors import SettingsError, short

_WANTED = "must be a share (5%), a number (50), or fpr=1% of images known to be clean"


@dataclass(frozen=True)
class Flag:
    """How many images are to be flagged; one of these, or none: the method's own decision."""

    share: float | None = None  # of all images
    count: int | None = None
    fpr: float | None = None  # share of images known to be clean that may be flagged

    @classmethod
    def parse(cls, text: str | None) -> "Flag":
        """A flag as it is typed: SettingsError where it is none."""
        if text is None:
            return cls()
        parts = re.fullmatch(r"(fpr=)?(\d{1,9}(?:\.\d{1,9})?) ?(%?)", text.strip(), re.ASCII)
        kind, number, percent = parts.groups() if parts else ("", "", "")
        if percent:
            share = float(number) / 100
            if not 0 < share < 1:
                raise SettingsError(f"flag is '{short(text)}', must be above 0% and below 100%.")
            return cls(fpr=share) if kind else cls(share=share)
        if kind or not number.isdecimal() or int(number) < 1:
            raise SettingsError(f"flag is '{short(text)}', {_WANTED}.")
        return cls(count=int(number))

    def wanted(self, count: int, least: int = 1) -> int | None:
        """How many of so many images are flagged; None where the images themselves decide.

        `least` of them are for any share, however small.
        """
        if self.count is not None:
            return min(self.count, count)
        if self.share is None:
            return None
        return min(max(int(self.share * count + 0.5), least), count)


# Verdicts (N,) as they are flagged, and the images' ranks of suspicion, 1 = most.
Flagged = tuple[Verdicts, list[int]]


def flagged(verdicts: Verdicts, flag: Flag, clean: NDArray[np.float64] | None = None) -> Flagged:
    """Flag a whole folder's images; `clean` are the margins of images known to be clean."""
    rank, margin = verdicts.rank, verdicts.margin
    if flag.fpr is not None:
        assert clean is not None
        move = above_all_but(clean, int(flag.fpr * len(clean)))
        noise = margin > move
    elif (wanted := flag.wanted(len(verdicts))) is not None:
        move = between(np.sort(margin), wanted)
        noise = rank <= wanted
    else:
        return verdicts, rank.tolist()
    return _as_asked(verdicts, noise, verdicts.threshold + move), rank.tolist()


def _as_asked(
    verdicts: Verdicts, noise: NDArray[np.bool_], threshold: NDArray[np.float64]
) -> Verdicts:
    """Verdicts with a flag of one's own: so many are called noise, and none is unsure."""
    return replace(verdicts, noise=noise, unsure=np.zeros_like(noise), threshold=threshold)


def above_all_but(margins: NDArray[np.float64], count: int) -> float:
    """The least of the margins (N,) that no more than `count` of them are above."""
    return float(np.sort(margins)[::-1][min(count, len(margins) - 1)])


def between(margins: Sequence[float] | NDArray[np.float64], count: int) -> float:
    """A value below the `count` largest of ascending margins, and not below the others."""
    size = len(margins)
    if count == 0:
        return float(margins[-1]) if size else 0.0
    largest = float(margins[size - count])
    next_one = float(margins[size - count - 1]) if count < size else largest - 1
    return (largest + next_one) / 2


class Ranking:
    """Ranks on arrival: each image among those up to itself."""

    def __init__(self, margins: Sequence[float] = ()) -> None:
        self.margins = sorted(margins)  # of all so far
        self.latest: list[float] = []  # in their order, until somebody took them

    def flagged(self, verdicts: Verdicts, flag: Flag) -> Flagged:
        """Flag the next images."""
        noise, threshold, ranks = verdicts.noise.copy(), verdicts.threshold.copy(), []
        for i, margin in enumerate(verdicts.margin.tolist()):
            bisect.insort(self.margins, margin)
            self.latest.append(margin)
            ranks.append(len(self.margins) - bisect.bisect_right(self.margins, margin) + 1)
            if (wanted := flag.wanted(len(self.margins), least=0)) is not None:
                move = between(self.margins, wanted)
                threshold[i] += move
                noise[i] = margin > move
        is_asked = flag.wanted(1) is not None
        return _as_asked(verdicts, noise, threshold) if is_asked else verdicts, ranks
