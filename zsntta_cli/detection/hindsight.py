"""Deciding on a folder in hindsight: it is shown again, and the last pass decides."""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, Stepper, StreamData

_ENOUGH = 400  # items seen before the last pass


def passes_for(count: int) -> int:
    """How often a folder of so many images is shown."""
    return min(max(-(-_ENOUGH // max(count, 1)), 1), 8)


def last_pass(stepper: Stepper, data: StreamData, passes: int, seed: int) -> Decisions:
    """Decisions on all items of a stream in its own order, after it was shown `passes` times.

    Each time in another order, drawn by the seed: a folder that is sorted would be the worst
    stream.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    order: NDArray[np.int64] = np.arange(len(data))
    for _ in range(passes):
        order = generator.permutation(len(data))
        shown = StreamData(data.pool, data.index[order], data.injected[order], data.seed)
        decisions = stepper.push(shown)
    return decisions.part(np.argsort(order))
