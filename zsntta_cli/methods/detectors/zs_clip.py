"""ZS-CLIP, the baseline of Sec. 2: frozen CLIP, noise where u = 1 - MCM is above the threshold."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.settings import ZsClipSettings
from zsntta_cli.methods.state import State, checked
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


def run(data: StreamData, options: ZsClipSettings, threshold: ThresholdSettings) -> Decisions:
    """Decide on every item of the stream as it would be online."""
    return stepper(data, options, threshold).push(data)


def stepper(
    _data: StreamData, options: ZsClipSettings, threshold: ThresholdSettings
) -> "ZeroShotStepper":
    """ZS-CLIP before the first item."""
    return ZeroShotStepper(OnlineThreshold(threshold, options.batch_size))


@dataclass(frozen=True)
class ZeroShotJudge:
    """ZS-CLIP with the threshold of one moment."""

    threshold: float

    def __call__(self, data: StreamData) -> Decisions:
        """Decide on items; their scores enter no queue."""
        return decisions(data, np.full(len(data), self.threshold))


class ZeroShotStepper:
    """ZS-CLIP as a stream runs: all that it learns is its threshold."""

    adapted, warm_up = True, 0  # there is no other rule
    evidence = None  # a threshold says nothing of whether there is noise

    def __init__(self, threshold: OnlineThreshold) -> None:
        self._threshold = threshold

    def push(self, data: StreamData) -> Decisions:
        """Decide on the next items: a batch's scores enter the queue before its threshold."""
        return decisions(data, self._threshold(data.noise_score))

    def judge(self) -> ZeroShotJudge:
        """What decides now."""
        return ZeroShotJudge(self._threshold.latest)

    def state(self) -> State:
        """The queue and its threshold."""
        return self._threshold.state()

    def restore(self, state: State) -> None:
        """Go on from a state: ValueError where it is another's."""
        self._threshold.restore(checked(state, self.state()))


def decisions(data: StreamData, threshold: NDArray[np.float64]) -> Decisions:
    """Noise iff u is above the item's threshold (T,)."""
    u = data.noise_score
    return Decisions(data.class_index, u > threshold, 1 - u, threshold)
