"""Settings: frozen dataclasses, their defaults and the presets; the only place of defaults."""

from zsntta_cli.settings.encoders import (
    DATA,
    FEATURES,
    PAPER_ENCODERS,
    RANDOM_WEIGHTS,
    RAY,
    TINY,
    EncoderChoice,
    ExtractSettings,
    LiveSettings,
)
from zsntta_cli.settings.streams import (
    MATCH,
    MCM,
    NO_NOISE,
    NOISE_TYPES,
    SCORES,
    StreamSettings,
    ThresholdSettings,
)

__all__ = [
    "DATA",
    "FEATURES",
    "MATCH",
    "MCM",
    "NOISE_TYPES",
    "NO_NOISE",
    "PAPER_ENCODERS",
    "RANDOM_WEIGHTS",
    "RAY",
    "SCORES",
    "TINY",
    "EncoderChoice",
    "ExtractSettings",
    "LiveSettings",
    "StreamSettings",
    "ThresholdSettings",
]
