"""In which order images are looked at, and which of them are shown with their picture.

Thresholds differ from image to image, so images are ordered by their margin, score less threshold.
"""

from collections.abc import Sequence
from itertools import chain, zip_longest

from zsntta_cli.detection.runs.rows import Row

_SHARE, _LEAST, _MOST = 10, 12, 60  # borderline: one in so many, at least and at most so many


def by_suspicion(rows: Sequence[Row]) -> list[int]:
    """Places of rows (N,), the most suspicious first: what is called noise comes before the rest.

    Ranks of what was decided on arrival are among the images so far, and do not order all.
    """
    return sorted(range(len(rows)), key=lambda i: (not rows[i]["noise"], -rows[i]["margin"], i))


def by_closeness(rows: Sequence[Row]) -> list[int]:
    """Places of rows (N,), those nearest to their threshold first, on whichever side."""
    return sorted(range(len(rows)), key=lambda i: (abs(rows[i]["margin"]), i))


def borderline(count: int) -> int:
    """How many of so many images are shown as borderline."""
    return min(count, max(_LEAST, min(_MOST, count // _SHARE)))


def pictured(rows: Sequence[Row], most: int) -> list[int]:
    """Places of the rows that get a picture: in turn the next borderline and suspicious one."""
    turns = zip_longest(by_closeness(rows), by_suspicion(rows))
    return list(dict.fromkeys(chain.from_iterable(turns)))[:most]
