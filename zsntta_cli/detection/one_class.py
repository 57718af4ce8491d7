"""One class: MCM is 1 whatever the image, so the score of a single image is another one.

u = σ(-1.5 z), z the largest logit standardised by its running mean and deviation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, Judge, Pool, Stepper, StreamData
from zsntta_cli.methods.scores import ZeroShot
from zsntta_cli.methods.state import State, checked, nested, within

_SHARPNESS = 1.5  # of the sigmoid that deviations go through
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Count, sum and sum of squares of the logits so far."""

    count: int = 0
    total: float = 0.0
    square: float = 0.0


def scores(logits: Floats, before: Moments) -> tuple[Floats, Moments]:
    """Noise scores u (N,) of the only class's logits (N,), each by those up to its own."""
    # Added one after another to what there was: the same sums whatever the pieces.
    count = before.count + np.arange(1, len(logits) + 1)
    total = np.cumsum(np.append(before.total, logits))
    square = np.cumsum(np.append(before.square, logits * logits))
    after = Moments(before.count + len(logits), float(total[-1]), float(square[-1]))
    return standardised(logits, total[1:] / count, square[1:] / count), after


def standardised(logits: Floats, mean: Floats, square: Floats) -> Floats:
    """Scores u of logits beside their mean and mean square; 0.5 where none varies."""
    spread = np.sqrt(np.maximum(square - mean * mean, 0))
    varies = spread > 1e-6 * (1 + np.abs(mean))
    z = np.where(varies, logits - mean, 0) / np.where(varies, spread, 1)
    return 1 / (1 + np.exp(np.minimum(_SHARPNESS * z, 500)))


@dataclass(frozen=True)
class OneClassJudge:
    """A method's judge behind the moments of the same time."""

    moments: Moments
    judge: Judge

    def __call__(self, data: StreamData) -> Decisions:
        """Decide on items; they enter no moments."""
        seen, logits = self.moments, _logits(data)
        count = max(seen.count, 1)
        mean, square = (np.full(len(logits), one / count) for one in (seen.total, seen.square))
        return self.judge(_rescored(data, standardised(logits, mean, square)))


class OneClassStepper:
    """A method's stepper that is pushed the scores above."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper, self._moments = stepper, Moments()

    @property
    def warm_up(self) -> int:
        """Items before there is a rule."""
        return self._stepper.warm_up

    @property
    def adapted(self) -> bool:
        """Whether the method's own rule decides."""
        return self._stepper.adapted

    def push(self, data: StreamData) -> Decisions:
        """Decide on the next items, and learn from them."""
        u, self._moments = scores(_logits(data), self._moments)
        return self._stepper.push(_rescored(data, u))

    def judge(self) -> OneClassJudge:
        """What decides now."""
        return OneClassJudge(self._moments, self._stepper.judge())

    def state(self) -> State:
        """The moments, and the method's own."""
        return nested(moments=vars(self._moments), method=self._stepper.state())

    def restore(self, state: State) -> None:
        """Go on from a state: ValueError where it is another's."""
        taken = checked(state, self.state())
        self._stepper.restore(within(taken, "method"))
        self._moments = Moments(**within(taken, "moments"))  # type: ignore[arg-type]


def _logits(data: StreamData) -> Floats:
    return data.detail(slice(None)).top_logits[:, 0].astype(np.float64)


def _rescored(data: StreamData, u: Floats) -> StreamData:
    """The items with other noise scores u (T,)."""
    everything, old = slice(None), data.pool
    pool = Pool(
        data.features(everything), old.text_features, old.logit_scale,
        ZeroShot(data.class_index, u), known_detail=data.detail(everything),
    )  # fmt: skip
    return StreamData(pool, np.arange(len(data)), data.injected, data.seed)
