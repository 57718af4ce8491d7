"""The noise score "match", which depends on the largest logit alone, even of a single class.

A sigmoid model (SigLIP, arXiv 2303.15343) has a bias b: l + b is the log odds that an image and a
text match at prior 1/B, where B is the number of pairs in a training batch. With ln B added the
prior is even; half of it lies between pairs that match and pairs that do not. T spreads the scores
over the threshold's grid: u = σ(-(l + b + ½ ln B) / T), where l is the largest logit.

A softmax model has no bias: u = σ(-1.5 z), where z is the largest logit, standardised by its mean
and standard deviation over the stream up to this item. Injected noise enters neither of them.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods import scores
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.method import Method
from zsntta_cli.methods.ood_scores import image_scores

_HALF_PRIOR = 0.5 * math.log(32_768)  # B of SigLIP and SigLIP 2
_TEMPERATURE = 2.0
_SHARPNESS = 1.5  # factor of z in the sigmoid
_LARGEST = 500.0  # largest argument of exp: beyond it u is 0 anyway
Floats = NDArray[np.float64]


def match(logits: Floats, bias: float) -> Floats:
    """The noise scores u (N,) of largest logits (N,), by a sigmoid model's bias."""
    return _sigmoid(-(logits + bias + _HALF_PRIOR) / _TEMPERATURE)


@dataclass
class Moments:
    """The count, sum and sum of squares of the logits so far."""

    count: int = 0
    total: float = 0.0
    square: float = 0.0


def standardised(
    logits: Floats, before: Moments, counts: NDArray[np.bool_] | None = None
) -> tuple[Floats, Moments]:
    """The noise scores u (N,) of logits (N,), each by the logits up to its own that `counts`."""
    counted = np.ones(len(logits), bool) if counts is None else counts
    values = np.where(counted, logits, 0.0)
    # Values are added one by one to the old sums, so that sums do not depend on the pieces.
    count = before.count + np.cumsum(counted)
    total = np.cumsum(np.append(before.total, values))
    square = np.cumsum(np.append(before.square, values * values))
    last = int(count[-1]) if len(count) else before.count
    after = Moments(last, float(total[-1]), float(square[-1]))
    counts_so_far = np.maximum(count, 1)
    return by_moments(logits, total[1:] / counts_so_far, square[1:] / counts_so_far), after


def by_moments(logits: Floats, mean: Floats, square: Floats) -> Floats:
    """The scores u of logits, given mean and mean square; 0.5 if the logits do not vary."""
    spread = np.sqrt(np.maximum(square - mean * mean, 0))
    varies = spread > 1e-6 * (1 + np.abs(mean))
    z = np.where(varies, logits - mean, 0) / np.where(varies, spread, 1)
    return _sigmoid(-_SHARPNESS * z)


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(np.minimum(-x, _LARGEST)))


def matched(data: StreamData, bias: float | None) -> StreamData:
    """A whole stream whose noise scores are "match" in place of 1 - MCM."""
    logits = image_scores(data, scores.max_logit)
    if bias is not None:
        return replace(data, own_score=match(logits, bias))
    return replace(data, own_score=standardised(logits, Moments(), ~data.injected)[0])


class BestClass(Method):
    """A method whose noise scores are "match", as its stream comes; without a bias standardised.

    With one class MCM is 1 for every image, so these are the only possible scores.
    """

    def __init__(self, method: Method, bias: float | None) -> None:
        self.method, self.moments = method, Moments()
        self.score = None if bias is None else partial(match, bias=bias)

    @property
    def adapted(self) -> bool:
        """Whether the method's own rule decides."""
        return self.method.adapted

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on the next items; without learning they do not change the moments."""
        logits = items.detail(slice(None)).top_logits[:, 0].astype(np.float64)
        if self.score is not None:
            u = self.score(logits)
        elif learn:
            u, self.moments = standardised(logits, self.moments)
        else:
            count = max(self.moments.count, 1)
            sums = (self.moments.total, self.moments.square)
            mean, square = (np.full(len(logits), total / count) for total in sums)
            u = by_moments(logits, mean, square)
        return self.method.push(replace(items, own_score=u), learn)
