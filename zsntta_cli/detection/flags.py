"""Which images are called noise: by the method's own rule, or as many as the user asks for.

Thresholds differ between images, so images are ranked by their margin, score minus threshold. To
flag more or fewer images, all thresholds move by one amount, which keeps the ranks.
"""

import bisect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.errors import SettingsError, short
from zsntta_cli.settings.options import check

_WANTED = "must be a share (5%) or a number (50)"


@dataclass(frozen=True)
class Flag:
    """How many images to flag; at most one field is set, and without any the method decides."""

    share: float | None = None  # of all images
    count: int | None = None
    fpr: float | None = None  # share of images known to be clean that may be flagged

    @classmethod
    def of(cls, value: "FlagValue") -> "Flag":
        """A flag as a program gives it: a share (0.05), a number (50), or the text that is typed.

        Raises:
            SettingsError: it is none of these.
        """
        if isinstance(value, Flag):
            return value
        if value is None or isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, float | np.floating):
            if not 0 < value < 1:
                raise SettingsError(f"flag is {value}, must be above 0 and below 1, as a share.")
            return cls(share=float(value))
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise SettingsError(f"flag is {short(repr(value))}, {_WANTED}.")
        return cls(count=int(value))

    @classmethod
    def parse(cls, text: str | None) -> "Flag":
        """A flag as it is typed; SettingsError if it is invalid."""
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

    def check_clean(self, has_clean: bool) -> None:
        """Raise SettingsError unless a rate of clean images comes with such images."""
        check(
            (self.fpr is None) != has_clean,
            "flag fpr and clean go together: the rate is measured on images known to be clean.",
        )

    def check_on_arrival(self) -> None:
        """Raise SettingsError for a flag that needs a whole folder."""
        check(
            self.count is None and self.fpr is None,
            "on arrival nobody knows how many images there will be: flag a share, as 5%, or "
            "decide in hindsight.",
        )

    def wanted(self, count: int, least: int = 1) -> int | None:
        """How many of `count` images to flag; None if that depends on the images.

        However small the share, at least `least` images are flagged.
        """
        if self.count is not None:
            return min(self.count, count)
        if self.share is None:
            return None
        return min(max(int(self.share * count + 0.5), least), count)


Features = NDArray[np.float32]
Floats = NDArray[np.float64]
FlagValue = Flag | str | float | None  # as a program gives it

# Verdicts (N,) as they are flagged, and the images' ranks of suspicion, 1 = most.
Flagged = tuple[Verdicts, list[int]]


def flagged(verdicts: Verdicts, flag: Flag, clean: Floats | None = None) -> Flagged:
    """Flag a whole folder's images; `clean` are the margins of images known to be clean."""
    rank, margin = verdicts.rank, verdicts.margin
    move, wanted = move_of(margin, flag, clean), flag.wanted(len(verdicts))
    if move is None:
        return verdicts, rank.tolist()
    noise = margin > move if wanted is None else rank <= wanted
    return _as_asked(verdicts, noise, verdicts.threshold + move), rank.tolist()


def flagged_among_clean(
    decide_all: Callable[[Features], Verdicts],
    features: Features,
    flag: Flag,
    clean: Features | None = None,
) -> Flagged:
    """Decide on a folder's features (N, D) in hindsight, and flag them.

    Features of images known to be clean (M, D), if given, are shown with the others.
    """
    everything = features if clean is None else np.concatenate([features, clean])
    verdicts, count = decide_all(everything), len(features)
    return flagged(verdicts[:count], flag, verdicts[count:].margin)


def _as_asked(
    verdicts: Verdicts, noise: NDArray[np.bool_], threshold: NDArray[np.float64]
) -> Verdicts:
    """Verdicts with the user's flag: these are called noise, and none is unsure."""
    return replace(verdicts, noise=noise, unsure=np.zeros_like(noise), threshold=threshold)


def move_of(margins: Floats, flag: Flag, clean: Floats | None = None) -> float | None:
    """How far a flag moves all thresholds, by margins (N,); None without a flag."""
    if flag.fpr is not None:
        assert clean is not None
        return above_all_but(clean, int(flag.fpr * len(clean)))
    wanted = flag.wanted(len(margins))
    return None if wanted is None else between(np.sort(margins), wanted)


def above_all_but(margins: Floats, count: int) -> float:
    """The least of the margins (N,) with at most `count` of them above it."""
    return float(np.sort(margins)[::-1][min(count, len(margins) - 1)])


def between(margins: Sequence[float] | Floats, count: int) -> float:
    """A value below the `count` largest of ascending margins, and not below the others."""
    size = len(margins)
    if count == 0:
        return float(margins[-1]) if size else 0.0
    largest = float(margins[size - count])
    next_one = float(margins[size - count - 1]) if count < size else largest - 1
    return (largest + next_one) / 2


class Ranking:
    """Ranks on arrival: each image is ranked among those up to itself."""

    def __init__(self, margins: Sequence[float] = ()) -> None:
        self.margins = sorted(margins)  # of all so far

    def flagged(self, verdicts: Verdicts, flag: Flag) -> Flagged:
        """Flag the next images."""
        noise, threshold, ranks = verdicts.noise.copy(), verdicts.threshold.copy(), []
        for i, margin in enumerate(verdicts.margin.tolist()):
            bisect.insort(self.margins, margin)
            ranks.append(len(self.margins) - bisect.bisect_right(self.margins, margin) + 1)
            if (wanted := flag.wanted(len(self.margins), least=0)) is not None:
                move = between(self.margins, wanted)
                threshold[i] += move
                noise[i] = margin > move
        is_asked = flag.wanted(1) is not None
        return _as_asked(verdicts, noise, threshold) if is_asked else verdicts, ranks
