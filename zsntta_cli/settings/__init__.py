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
    NO_NOISE,
    NOISE_TYPES,
    StreamSettings,
    ThresholdSettings,
)

__all__ = [
    "DATA",
    "FEATURES",
    "NOISE_TYPES",
    "NO_NOISE",
    "PAPER_ENCODERS",
    "RANDOM_WEIGHTS",
    "RAY",
    "TINY",
    "EncoderChoice",
    "ExtractSettings",
    "LiveSettings",
    "StreamSettings",
    "ThresholdSettings",
]
