"""Settings: frozen dataclasses, their defaults and the presets; the only place of defaults."""

from zsntta_cli.settings.encoders import (
    PAPER_ENCODERS,
    RANDOM_WEIGHTS,
    TINY,
    EncoderChoice,
    ExtractSettings,
)
from zsntta_cli.settings.methods import (
    METHOD_SETTINGS,
    AdaNDSettings,
    AdaNDTDASettings,
    ClipnSettings,
    MethodSettings,
    NegLabelSettings,
    ScoreSettings,
    TDASettings,
    ZsClipSettings,
)
from zsntta_cli.settings.runs import (
    NO_NOISE,
    NOISE_TYPES,
    PRESETS,
    RunSettings,
    StreamSettings,
    ThresholdSettings,
    build_run,
    noise_name,
    run_from_record,
    words_name,
)

__all__ = [
    "METHOD_SETTINGS",
    "NOISE_TYPES",
    "NO_NOISE",
    "PAPER_ENCODERS",
    "PRESETS",
    "RANDOM_WEIGHTS",
    "TINY",
    "AdaNDSettings",
    "AdaNDTDASettings",
    "ClipnSettings",
    "EncoderChoice",
    "ExtractSettings",
    "MethodSettings",
    "NegLabelSettings",
    "RunSettings",
    "ScoreSettings",
    "StreamSettings",
    "TDASettings",
    "ThresholdSettings",
    "ZsClipSettings",
    "build_run",
    "noise_name",
    "run_from_record",
    "words_name",
]
