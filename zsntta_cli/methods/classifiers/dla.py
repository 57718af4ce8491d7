"""DLA, of "Dynamic Logits Adjustment and Exploration for Test-Time Adaptation", CVPR 2026.

A class that was answered more often has its logit lowered: by its share of the answers so far, the
more so the less sure the frozen model is beside what it usually is of that class. A sample is
classified by what was learned before it; then its frozen answer is counted. The paper's second
part, a cache of samples near decision boundaries, is not built.

Logits are multiplied by a factor below 1, which lowers positive ones alone: CLIP's cosines times
its scale are positive. A negative one, which it would raise, is left as it is. The equations are
those of the released code (MIT, logits_adjustment), whose α is chosen by set.
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.kernels.compiled import compiled
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks, largest
from zsntta_cli.methods.settings import DLASettings


def classes(
    data: StreamData, options: DLASettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classes (T,) by adjusted logits; `offered` (T,): the items that are counted."""
    count = len(data.pool.text_features)
    answers, sure = np.ones(count), np.zeros(count)  # n_c and m_c
    class_index = np.empty(len(data), np.int32)
    for part in blocks(len(data)):
        logits = Frozen.of(data, part).logits
        _adjust(class_index[part], logits, offered[part], answers, sure, options.dla_strength)
    return class_index


@compiled
def _adjust(best, logits, offered, answers, sure, strength):  # type: ignore[no-untyped-def]
    """Classes (B,) of items by their logits (B, C); counts n (C,) and means m (C,) in place."""
    count, total = logits.shape
    everything = answers.sum()
    for i in range(count):
        row = logits[i]
        highest, frozen = largest(row), 0
        powers = 0.0
        for c in range(total):
            powers += np.exp(row[c] - highest)
            if row[c] > row[frozen]:
                frozen = c
        probability = 1 / powers
        rate = strength * (1 - (probability - sure[frozen])) / everything
        top, value = 0, -np.inf
        for c in range(total):
            logit = row[c] * np.exp(-rate * answers[c]) if row[c] > 0 else row[c]
            if logit > value:
                top, value = c, logit
        best[i] = top
        if offered[i]:
            seen = answers[frozen]  # one is there before any item
            sure[frozen] += (probability - sure[frozen]) / seen
            answers[frozen] += 1
            everything += 1
