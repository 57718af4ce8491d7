"""The noise score "match", which depends on the largest logit alone, even of a single class.

A sigmoid model (SigLIP, arXiv 2303.15343) has a bias b: l + b is the log odds that an image and a
text match at prior 1/B, where B is the number of pairs in a training batch. With ln B added the
prior is even; half of it lies between pairs that match and pairs that do not. T spreads the scores
over the threshold's grid: u = σ(-(l + b + ½ ln B) / T), where l is the largest logit.

A softmax model has no bias: u = σ(-1.5 z), where z is the largest logit, standardised by its mean
and standard deviation over the stream up to this item. Injected noise enters neither of them.
"""

import math
from dataclasses import replace

import numpy as np

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.method import Method
from zsntta_cli.methods.scores import sigmoid

_HALF_PRIOR = 0.5 * math.log(32_768)  # B of SigLIP and SigLIP 2
_TEMPERATURE = 2.0
_SHARPNESS = 1.5  # factor of z in the sigmoid


class Match:
    """The noise scores "match" while a stream runs, by a sigmoid model's bias or without one."""

    def __init__(self, bias: float | None) -> None:
        self.bias = bias
        self.sums = np.zeros(3)  # count, sum and sum of squares of the logits so far

    def __call__(self, items: StreamData, learn: bool = True) -> StreamData:
        """The next items with these noise scores, 0.5 where the logits so far do not vary."""
        logits = items.zero_shot.top_logits[:, 0].astype(np.float64)
        if self.bias is not None:
            u = sigmoid(-(logits + self.bias + _HALF_PRIOR) / _TEMPERATURE)
            return replace(items, own_score=u)
        sums = self.sums[:, None]
        if learn:  # added one by one to the old sums, so that they do not depend on the pieces
            values = np.stack([np.ones(len(logits)), logits, logits * logits]) * ~items.injected
            sums = np.cumsum(np.concatenate([sums, values], axis=1), axis=1)
            self.sums, sums = sums[:, -1], sums[:, 1:]
        _, mean, square = sums / np.maximum(sums[0], 1)
        spread = np.sqrt(np.maximum(square - mean * mean, 0))
        varies = spread > 1e-6 * (1 + np.abs(mean))
        z = np.where(varies, logits - mean, 0) / np.where(varies, spread, 1)
        return replace(items, own_score=sigmoid(-_SHARPNESS * z))


class BestClass(Method):
    """A method whose noise scores are "match", as its stream comes; without a bias standardised.

    With one class MCM is 1 for every image, so these are the only possible scores.
    """

    def __init__(self, method: Method, bias: float | None) -> None:
        self.method, self.match = method, Match(bias)

    @property
    def adapted(self) -> bool:
        """Whether the method's own rule decides."""
        return self.method.adapted

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on the next items; without learning they do not change the moments."""
        return self.method.push(self.match(items, learn), learn)
