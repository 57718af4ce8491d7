"""The noise score "match": by the best class's logit alone, so for any number of classes, one too.

A sigmoid model (SigLIP, arXiv 2303.15343) has a bias b: l + b is the log-odds of a pair of image
and text at prior 1/B, B the pairs that it was trained with at a time. Adding ln B is even odds for
one pair; half of it lies between pairs that match and pairs that do not, and T softens the rest for
a threshold that splits on a grid: u = σ(-(l + b + ½ ln B) / T), l the largest logit.

A softmax model has no bias: u = σ(-1.5 z), z that logit standardised by its mean and deviation over
the stream up to the item itself. Items that the method put in count for neither.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods import scores
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.ood_scores import image_scores

_HALF_PRIOR = 0.5 * math.log(32_768)  # B of SigLIP and SigLIP 2
_TEMPERATURE = 2.0
_SHARPNESS = 1.5  # of the sigmoid that deviations go through
_LARGEST = 500.0  # argument of exp: beyond it u is 0 all the same
Floats = NDArray[np.float64]


def match(logits: Floats, bias: float) -> Floats:
    """Noise scores u (N,) of the largest logits (N,), by a sigmoid model's bias."""
    return _sigmoid(-(logits + bias + _HALF_PRIOR) / _TEMPERATURE)


@dataclass(frozen=True)
class Moments:
    """Count, sum and sum of squares of the logits so far."""

    count: int = 0
    total: float = 0.0
    square: float = 0.0


def standardised(
    logits: Floats, before: Moments, counts: NDArray[np.bool_] | None = None
) -> tuple[Floats, Moments]:
    """Noise scores u (N,) of the largest logits (N,), each by those up to its own that `counts`."""
    counted = np.ones(len(logits), bool) if counts is None else counts
    values = np.where(counted, logits, 0.0)
    # Added one after another to what there was: the same sums whatever the pieces.
    count = before.count + np.cumsum(counted)
    total = np.cumsum(np.append(before.total, values))
    square = np.cumsum(np.append(before.square, values * values))
    last = int(count[-1]) if len(count) else before.count
    after = Moments(last, float(total[-1]), float(square[-1]))
    counts_so_far = np.maximum(count, 1)
    return by_moments(logits, total[1:] / counts_so_far, square[1:] / counts_so_far), after


def by_moments(logits: Floats, mean: Floats, square: Floats) -> Floats:
    """Scores u of logits beside their mean and mean square; 0.5 where none varies."""
    spread = np.sqrt(np.maximum(square - mean * mean, 0))
    varies = spread > 1e-6 * (1 + np.abs(mean))
    z = np.where(varies, logits - mean, 0) / np.where(varies, spread, 1)
    return _sigmoid(-_SHARPNESS * z)


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(np.minimum(-x, _LARGEST)))


def matched(data: StreamData, bias: float | None) -> StreamData:
    """A whole stream with these noise scores in place of MCM's."""
    kept = data.pool.zero_shot.largest_logit
    if kept is None:
        logits = image_scores(data, scores.max_logit)
    else:
        logits = kept[data.index].astype(np.float64)
    if bias is not None:
        return replace(data, own_score=match(logits, bias))
    return replace(data, own_score=standardised(logits, Moments(), ~data.injected)[0])
