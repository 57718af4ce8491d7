"""Which decisions are sure enough to learn from: the gap rule of several released codes.

AdaNeg (arXiv 2410.20149), TANL (arXiv 2603.25250) and Syde use an item as ID only well below the
threshold θ of its noise score u, and as noise only well above it.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def is_surely_noise(u: Floats, threshold: Floats, gap: float) -> NDArray[np.bool_]:
    """U > θ + g (1 - θ), for noise scores u in [0, 1] and a gap g in [0, 1]."""
    return np.asarray(u > threshold + gap * (1 - threshold))


def is_surely_id(u: Floats, threshold: Floats, gap: float) -> NDArray[np.bool_]:
    """U < θ - g θ."""
    return np.asarray(u < threshold - gap * threshold)


def is_sure(u: Floats, threshold: Floats, gap: float) -> NDArray[np.bool_]:
    """Either of them; without a gap every decision is, that of u = θ too."""
    if not gap:
        return np.ones(len(u), np.bool_)
    return is_surely_noise(u, threshold, gap) | is_surely_id(u, threshold, gap)
