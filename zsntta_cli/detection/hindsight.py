"""Deciding on a folder in hindsight: it is shown again, and the last pass decides."""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, Stepper, StreamData

_SEEN = 64  # images before the last pass: where ridge's own rule begins
_MOST = 12  # passes


def passes_for(count: int) -> int:
    """How often a folder of so many images is shown: ridge's own rule is to decide all of it.

    More was measured to bring nothing and to cost clean images: what is shown again is no new
    evidence (docs/detector.md). AdaND learns nothing good from repeats, and gets no more of them.
    """
    return min(1 + -(-_SEEN // max(count, 1)), _MOST)


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
