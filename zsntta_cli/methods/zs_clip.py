"""ZS-CLIP, the baseline of Sec. 2: frozen CLIP, noise where u = 1 - MCM is above the threshold."""

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.settings import ZsClipSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


def run(data: StreamData, options: ZsClipSettings, threshold: ThresholdSettings) -> Decisions:
    """Decide on every item of the stream as it would be online."""
    u = data.noise_score
    found = OnlineThreshold(threshold, options.batch_size)(u)
    return Decisions(data.class_index, u > found, 1 - u, found)
