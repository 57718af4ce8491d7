"""ZS-CLIP, the baseline of Sec. 2: frozen CLIP with a threshold on the noise score u = 1 - MCM."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.settings import ZsClipSettings
from zsntta_cli.methods.state import State, checked
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


def run(data: StreamData, options: ZsClipSettings, threshold: ThresholdSettings) -> Decisions:
    """Decide on every item of the stream as if it ran online."""
    return stepper(data, options, threshold).push(data)


def stepper(
    _data: StreamData, options: ZsClipSettings, threshold: ThresholdSettings
) -> "ZeroShotStepper":
    """Make a stepper of ZS-CLIP before the first item."""
    return ZeroShotStepper(OnlineThreshold(threshold, options.batch_size))


@dataclass(frozen=True)
class ZeroShotJudge:
    """ZS-CLIP with the threshold of one moment."""

    threshold: float

    def __call__(self, data: StreamData) -> Decisions:
        """Decide on items, whose scores do not enter the queue."""
        return decisions(data, np.full(len(data), self.threshold))


class ZeroShotStepper:
    """ZS-CLIP while a stream runs: it learns only its threshold."""

    adapted, warm_up = True, 0  # there is no other rule
    evidence = None  # a threshold does not tell whether there is noise

    def __init__(self, threshold: OnlineThreshold) -> None:
        self._threshold = threshold

    def push(self, data: StreamData) -> Decisions:
        """Decide on the next items; a batch enters the queue before its threshold is found."""
        return decisions(data, self._threshold(data.noise_score))

    def judge(self) -> ZeroShotJudge:
        """The rule at this moment."""
        return ZeroShotJudge(self._threshold.latest)

    def state(self) -> State:
        """The queue and its threshold."""
        return self._threshold.state()

    def restore(self, state: State) -> None:
        """Continue from a state; raise ValueError if it is not one of ZS-CLIP's."""
        self._threshold.restore(checked(state, self.state()))


def decisions(data: StreamData, threshold: NDArray[np.float64]) -> Decisions:
    """Call an item noise iff u is above its threshold (T,)."""
    u = data.noise_score
    return Decisions(data.class_index, u > threshold, 1 - u, threshold)
