"""DLA, of "Dynamic Logits Adjustment and Exploration for Test-Time Adaptation", CVPR 2026.

The logit of a class is lowered by its share of the answers so far. It is lowered more if the frozen
model is less certain of this sample than it usually is of the predicted class. A sample is
classified by what was learned before it; then its frozen answer is counted. The paper's second
part, a cache of samples near decision boundaries, is not implemented.

Logits are multiplied by a factor below 1, which lowers positive logits only; CLIP's cosines times
its scale are positive. A negative logit would rise, so it is left unchanged. The equations are
those of the released code (MIT, logits_adjustment), which chooses α for each set.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks, largest
from zsntta_cli.methods.kernels.compiled import compiled
from zsntta_cli.methods.settings import FROM_ZERO, MethodSettings
from zsntta_cli.settings.options import option


@dataclass(frozen=True)
class DLASettings(MethodSettings):
    """DLA, with ImageNet's value: the logits of often predicted classes are lowered."""

    dla_strength: float = option(0.8, "α: strength of the lowering.", within=FROM_ZERO)


class DLA:
    """The classifier while the stream runs."""

    def __init__(self, data: StreamData, options: DLASettings) -> None:
        self.options = options
        classes = len(data.pool.text_features)
        self.answers, self.sure = np.ones(classes), np.zeros(classes)  # n and m of each class

    def classify(self, items: StreamData, offered: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Classify T items by adjusted logits; those that are `offered` (T,) are counted."""
        class_index = np.empty(len(items), np.int32)
        for part in blocks(len(items)):
            logits = Frozen.of(items, part).logits
            _adjust(
                class_index[part], logits, offered[part], self.answers, self.sure,
                self.options.dla_strength,
            )  # fmt: skip
        return class_index


@compiled
def _adjust(best, logits, offered, answers, sure, strength):  # type: ignore[no-untyped-def]
    """Write classes (B,) by logits (B, C), and change counts n (C,) and means m (C,)."""
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
            seen = answers[frozen]  # it starts at 1
            sure[frozen] += (probability - sure[frozen]) / seen
            answers[frozen] += 1
            everything += 1
