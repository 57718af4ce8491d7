"""A method behind noise scores of the best class's logit alone (methods/match.py).

Of one class MCM is 1 whatever the image, so there they are the only ones.
"""

from dataclasses import dataclass, replace

import numpy as np

from zsntta_cli.methods.base import Decisions, Judge, Stepper, StreamData
from zsntta_cli.methods.match import Floats, Moments, by_moments, match, standardised
from zsntta_cli.methods.state import State, checked, nested, within
from zsntta_cli.settings import MATCH


@dataclass(frozen=True)
class BestClassJudge:
    """A method's judge behind the moments of the same time."""

    moments: Moments
    bias: float | None  # of a sigmoid model, which asks for no moments
    judge: Judge

    def __call__(self, data: StreamData) -> Decisions:
        """Decide on items; they enter no moments."""
        seen, logits = self.moments, _logits(data)
        if self.bias is not None:
            return self.judge(replace(data, own_score=match(logits, self.bias)))
        count = max(seen.count, 1)
        mean, square = (np.full(len(logits), one / count) for one in (seen.total, seen.square))
        return self.judge(replace(data, own_score=by_moments(logits, mean, square)))


class BestClassStepper:
    """A method's stepper that is pushed the scores above."""

    def __init__(self, stepper: Stepper, bias: float | None = None) -> None:
        self._stepper, self._moments, self._bias = stepper, Moments(), bias

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
        logits = _logits(data)
        if self._bias is None:
            u, self._moments = standardised(logits, self._moments)
        else:
            u = match(logits, self._bias)
        return self._stepper.push(replace(data, own_score=u))

    def judge(self) -> BestClassJudge:
        """What decides now."""
        return BestClassJudge(self._moments, self._bias, self._stepper.judge())

    def state(self) -> State:
        """The moments, and the method's own."""
        return nested(moments=vars(self._moments), method=self._stepper.state())

    def restore(self, state: State) -> None:
        """Go on from a state: ValueError where it is another's."""
        taken = checked(state, self.state())
        self._stepper.restore(within(taken, "method"))
        self._moments = Moments(**within(taken, "moments"))  # type: ignore[arg-type]


def rescored(stepper: Stepper, score: str, bias: float | None, classes: int) -> Stepper:
    """A method's stepper behind the noise score that is asked for."""
    if score == MATCH:
        return BestClassStepper(stepper, bias)
    return BestClassStepper(stepper) if classes == 1 else stepper


def _logits(data: StreamData) -> Floats:
    return data.detail(slice(None)).top_logits[:, 0].astype(np.float64)
