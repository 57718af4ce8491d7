"""Sec. 3: which samples a live method adapts on, by its pipeline. No torch."""

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
    """Which items (B,) a method adapts on, given its noise decisions (B,).

    "normal" takes those that it calls clean, "gt" the truly clean, a mask (T,) of the stream's
    items; "all" takes all.
    """
    if pipeline == "all":
        return np.ones(len(items), bool)
    if pipeline == "gt":
        assert truly_clean is not None
        return truly_clean[items]
    return ~is_noise & ~stream.injected[items]
