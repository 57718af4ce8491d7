"""Sec. 3: the pipelines, which choose the samples that a live method adapts on. No torch."""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData


def adapts_on(
    stream: StreamData,
    pipeline: str,
    items: NDArray[np.int64],
    is_noise: NDArray[np.bool_],
    truly_clean: NDArray[np.bool_] | None,
) -> NDArray[np.bool_]:
    """The items, as a mask (B,), on which a method adapts, given its noise decisions (B,).

    "normal" takes the items that it calls clean, "gt" those of the mask `truly_clean` (T,), and
    "all" takes all items.
    """
    if pipeline == "all":
        return np.ones(len(items), bool)
    if pipeline == "gt":
        assert truly_clean is not None
        return truly_clean[items]
    return ~is_noise & ~stream.injected[items]
