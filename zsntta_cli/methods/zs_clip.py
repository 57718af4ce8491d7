"""ZS-CLIP, the baseline of Sec. 2: frozen CLIP, noise where u = 1 - MCM is above the threshold."""

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.settings import RunSettings, ZsClipSettings
from zsntta_cli.threshold import OnlineThreshold


def run(data: StreamData, settings: RunSettings) -> Decisions:
    """Decide on every item of the stream as it would be online."""
    assert isinstance(settings.options, ZsClipSettings)
    u = data.noise_score
    threshold = OnlineThreshold(settings.threshold, settings.options.batch_size)(u)
    return Decisions(data.class_index, u > threshold, 1 - u, threshold)
