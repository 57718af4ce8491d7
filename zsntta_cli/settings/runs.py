"""The settings of a run: its stream, its threshold, its method; the presets.

Each setting's name is unique over all classes, so that a flat mapping (a preset, the options of the
command line) says where each value belongs.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings.checks import check, check_choice
from zsntta_cli.settings.methods import METHOD_SETTINGS, MethodSettings, ZsClipSettings

_T = TypeVar("_T")

NOISE_TYPES = ("gaussian", "uniform", "salt-and-pepper", "poisson")
NO_NOISE = "none"


def noise_name(noise_type: str) -> str:
    """The name of the pool of one type of noise images."""
    return f"noise-{noise_type}"


def words_name(words: str) -> str:
    """The name of the features of a word list."""
    return f"words-{words}"


@dataclass(frozen=True)
class StreamSettings:
    """Which items a stream has and in which order (see stream.py)."""

    ratio: float = 0.5  # noise ratio: OOD share of the stream, 0 <= ratio < 1 (the paper: 0 … 75 %)
    seed: int = 0  # of the order, and of a random detector; the paper: 0 … 4
    noise: str = NO_NOISE  # type of the injected noise images (Sec. 4.2)
    noise_every: int = 8  # M: one noise image after every M test samples (Sec. 5.1)
    placement: str = "periodic"  # "shuffled" puts the noise images anywhere in the stream
    ood_fill: str = "repeat"  # an OOD set too small for the ratio is repeated, or "cap"s the ratio
    rounded_odds: bool = False  # OOD:ID odds rounded to two digits (25 % means 0.33, not 1/3)
    limit: int | None = None  # only the first so many test samples

    def __post_init__(self) -> None:
        check(0 <= self.ratio < 1, f"ratio is {self.ratio}, must be in [0, 1): 0.25 for 25 %.")
        check(self.seed >= 0, f"seed is {self.seed}, must be 0 or more.")
        check_choice("noise", self.noise, (*NOISE_TYPES, NO_NOISE))
        check(self.noise_every >= 1, f"noise-every is {self.noise_every}, must be 1 or more.")
        check_choice("placement", self.placement, ("periodic", "shuffled"))
        check_choice("ood-fill", self.ood_fill, ("repeat", "cap"))
        limit = self.limit
        check(limit is None or limit >= 1, f"limit is {limit}, must be 1 or more.")


@dataclass(frozen=True)
class ThresholdSettings:
    """How the noise score's threshold is found (see threshold.py)."""

    fixed: float | None = None  # a fixed threshold on the ID score instead of the adaptive one
    queue: int = 512  # N_q (Sec. 5.1)
    criterion: str = "otsu"  # or "unweighted": Eq. 3 to the letter
    degenerate: str = "hold"  # no valid split: "hold" the last threshold, or "zero"

    def __post_init__(self) -> None:
        fixed_ok = self.fixed is None or 0 <= self.fixed <= 1
        check(fixed_ok, f"threshold is {self.fixed}, must be 'adaptive' or in [0, 1].")
        check(1 <= self.queue <= 1 << 20, f"queue is {self.queue}, must be in 1 … 1,048,576.")
        check_choice("criterion", self.criterion, ("otsu", "unweighted"))
        check_choice("degenerate", self.degenerate, ("hold", "zero"))


# AdaND injects noise as part of the method; ZS-CLIP only where it is asked to.
_METHOD_DEFAULTS: dict[str, dict[str, Any]] = {
    "adand": {"noise": "gaussian"},
    "adand+tda": {"noise": "gaussian"},
    "adand+tent": {"noise": "gaussian"},
}

# Where the ID set is of the ImageNet family.
_IMAGENET_DEFAULTS: dict[str, dict[str, Any]] = {
    "tent": {"optimizer": "sgd"},
    "adand+tent": {"optimizer": "sgd"},
    "tpt": {"augmix": False},
}

# `official` follows the paper's released code where that differs from the paper's text.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "official": {
        "placement": "shuffled",
        "rounded_odds": True,
        "degenerate": "zero",
        "reevaluate": False,
        "late_start": True,
    },
    # Ours, not the paper's: the detector's random start is its weak point (see the README).
    "tuned": {
        "detector_init": "zero",
        "warmup": 3,
        "evidence": 0.1,
        "score_temperature": 2.0,
    },
}


@dataclass(frozen=True)
class RunSettings:
    """One method on one stream of one ID-OOD pair, complete: a run can be repeated from it."""

    method: str
    encoder: str  # the folder name of the encoder's features
    id_set: str
    ood_set: str | None
    prompt: str
    stream: StreamSettings = field(default_factory=StreamSettings)
    threshold: ThresholdSettings = field(default_factory=ThresholdSettings)
    options: MethodSettings = field(default_factory=ZsClipSettings)


def build_run(
    method: str,
    encoder: str,
    id_set: str,
    ood_set: str | None,
    prompt: str,
    preset: str = "paper",
    **values: Any,
) -> RunSettings:
    """A run of `method` from a preset and single values; values it has no use for are left out.

    Raises:
        SettingsError: an unknown method or preset, or a value out of its range.
    """
    check_choice("method", method, tuple(METHOD_SETTINGS))
    check_choice("preset", preset, tuple(PRESETS))
    family = _IMAGENET_DEFAULTS.get(method, {}) if id_set.startswith("imagenet") else {}
    flat = _METHOD_DEFAULTS.get(method, {}) | family | PRESETS[preset] | values
    return RunSettings(
        method, encoder, id_set, ood_set, prompt,
        _pick(StreamSettings, flat), _pick(ThresholdSettings, flat),
        _pick(METHOD_SETTINGS[method], flat),
    )  # fmt: skip


def run_from_record(settings: Mapping[str, Any]) -> RunSettings:
    """The run that a record's `settings` describe.

    Raises:
        SettingsError: they are not such settings.
    """
    try:
        flat = dict(settings)
        return RunSettings(
            stream=StreamSettings(**flat.pop("stream")),
            threshold=ThresholdSettings(**flat.pop("threshold")),
            options=METHOD_SETTINGS[flat["method"]](**flat.pop("options")),
            **flat,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SettingsError(f"these are not the settings of a run ({error!r}).") from error


def _pick(settings: type[_T], flat: Mapping[str, Any]) -> _T:
    names = {f.name for f in dataclasses.fields(settings)}  # type: ignore[arg-type]
    return settings(**{name: value for name, value in flat.items() if name in names})
