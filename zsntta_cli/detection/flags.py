"""Which images are called noise: by the method's own rule, or as many as the user asks for.

Thresholds differ between images, so images are ranked by their margin, score minus threshold. To
flag more or fewer images, all thresholds move by one amount, which keeps the ranks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.errors import SettingsError, short

_WANTED = "must be a share (5%) or a number (50)"


@dataclass(frozen=True)
class Flag:
    """How many images to flag; at most one field is set, and without any the method decides."""

    share: float | None = None  # of all images
    count: int | None = None

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
        parts = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?(%?)", text.strip(), re.ASCII)
        number, percent = parts.groups() if parts else ("", "")
        if percent:
            share = float(number) / 100
            if not 0 < share < 1:
                raise SettingsError(f"flag is '{short(text)}', must be above 0% and below 100%.")
            return cls(share=share)
        if not number.isdecimal() or int(number) < 1:
            raise SettingsError(f"flag is '{short(text)}', {_WANTED}.")
        return cls(count=int(number))

    def wanted(self, count: int) -> int | None:
        """How many of `count` images to flag, at least one; None without a flag."""
        if self.count is not None:
            return min(self.count, count)
        if self.share is None:
            return None
        return min(max(int(self.share * count + 0.5), 1), count)


Floats = NDArray[np.float64]
FlagValue = Flag | str | float | None  # as a program gives it

# Verdicts (N,) as they are flagged, and the images' ranks of suspicion, 1 = most.
Flagged = tuple[Verdicts, list[int]]


def flagged(verdicts: Verdicts, flag: Flag) -> Flagged:
    """Flag as many of a whole folder's images as wanted; none is unsure then."""
    rank, wanted = verdicts.rank, flag.wanted(len(verdicts))
    if wanted is not None:
        rank = verdicts.margin_rank  # by which the thresholds move
        threshold = verdicts.threshold + between(np.sort(verdicts.margin), wanted)
        unsure = np.zeros(len(verdicts), bool)
        verdicts = replace(verdicts, noise=rank <= wanted, unsure=unsure, threshold=threshold)
    return verdicts, rank.tolist()


def between(margins: Sequence[float] | Floats, count: int) -> float:
    """A value below the `count` largest of ascending margins, and not below the others."""
    size = len(margins)
    if count == 0:
        return float(margins[-1]) if size else 0.0
    largest = float(margins[size - count])
    next_one = float(margins[size - count - 1]) if count < size else largest - 1
    return (largest + next_one) / 2
