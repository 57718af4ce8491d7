"""Settings: frozen dataclasses, their defaults and the presets; the only place of defaults.

A run is one method on one stream. Each setting's name is unique over all classes here, so that a
flat mapping (a preset, the options of the command line, a record) says where each value belongs.
"""

import dataclasses
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from zsntta_cli.errors import SettingsError

_T = TypeVar("_T")

NOISE_TYPES = ("gaussian", "uniform", "salt-and-pepper", "poisson")
NO_NOISE = "none"


def _check(ok: bool, message: str) -> None:
    if not ok:
        raise SettingsError(message)


def _choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    _check(value in choices, f"{name} is '{value}', must be one of: {', '.join(choices)}.")


@dataclass(frozen=True)
class StreamSettings:
    """Which items a stream has and in which order (see stream.py)."""

    ratio: float = 0.5  # noise ratio: OOD share of the stream, 0 <= ratio < 1 (the paper: 0 … 75 %)
    seed: int = 0  # of the order only; the paper's seeds: 0 … 4
    noise: str = NO_NOISE  # type of the injected noise images (Sec. 4.2)
    noise_every: int = 8  # M: one noise image after every M test samples (Sec. 5.1)
    placement: str = "periodic"  # "shuffled" puts the noise images anywhere in the stream
    ood_fill: str = "repeat"  # an OOD set too small for the ratio is repeated, or "cap"s the ratio
    rounded_odds: bool = False  # OOD:ID odds rounded to two digits (25 % means 0.33, not 1/3)

    def __post_init__(self) -> None:
        _check(0 <= self.ratio < 1, f"ratio is {self.ratio}, must be in [0, 1): 0.25 for 25 %.")
        _check(self.seed >= 0, f"seed is {self.seed}, must be 0 or more.")
        _choice("noise", self.noise, (*NOISE_TYPES, NO_NOISE))
        _check(self.noise_every >= 1, f"noise-every is {self.noise_every}, must be 1 or more.")
        _choice("placement", self.placement, ("periodic", "shuffled"))
        _choice("ood-fill", self.ood_fill, ("repeat", "cap"))


@dataclass(frozen=True)
class ThresholdSettings:
    """How the noise score's threshold is found (see threshold.py)."""

    fixed: float | None = None  # a fixed threshold on the ID score instead of the adaptive one
    queue: int = 512  # N_q (Sec. 5.1)
    criterion: str = "otsu"  # or "unweighted": Eq. 3 to the letter
    degenerate: str = "hold"  # no valid split: "hold" the last threshold, or "zero"

    def __post_init__(self) -> None:
        fixed_ok = self.fixed is None or 0 <= self.fixed <= 1
        _check(fixed_ok, f"threshold is {self.fixed}, must be 'adaptive' or in [0, 1].")
        _check(1 <= self.queue <= 1 << 20, f"queue is {self.queue}, must be in 1 … 1,048,576.")
        _choice("criterion", self.criterion, ("otsu", "unweighted"))
        _choice("degenerate", self.degenerate, ("hold", "zero"))


@dataclass(frozen=True)
class ZsClipSettings:
    """ZS-CLIP, Sec. 2: frozen CLIP and the threshold."""

    batch_size: int = 1

    def __post_init__(self) -> None:
        _check(self.batch_size >= 1, f"batch-size is {self.batch_size}, must be 1 or more.")


@dataclass(frozen=True)
class AdaNDSettings:
    """AdaND, Sec. 4 and Algorithm 1: a linear noise detector learned from ZS-CLIP's decisions."""

    batch_size: int = 1
    update_every: int = 128  # L, the detector's queue; at batch sizes above 1 each batch is one
    warmup: int = 10  # N: optimisation steps before the detector decides (Sec. 5.1)
    learning_rate: float = 5e-4  # Adam, no weight decay (Sec. 5.1)
    reevaluate: bool = True  # the items that trigger an update are judged after it (Sec. 4.1)
    late_start: bool = False  # first item (batch 1) or first batch kept out of the warm-up's count
    pseudo_labels: str = "frozen"  # of ZS-CLIP, or in stage 2 the "detector"'s own (appendix)
    detector_init: str = "random"  # torch's default, or "zero"
    evidence: float = 0.0  # weight of the frozen model's own log odds in the detector's logit
    score_temperature: float = 1.0  # of the sigmoid that thresholds are found on

    def __post_init__(self) -> None:
        _check(self.batch_size >= 1, f"batch-size is {self.batch_size}, must be 1 or more.")
        _check(self.update_every >= 1, f"update-every is {self.update_every}, must be 1 or more.")
        _check(self.warmup >= 0, f"warmup is {self.warmup}, must be 0 or more.")
        _check(self.learning_rate > 0, f"learning-rate is {self.learning_rate}, must be above 0.")
        _choice("pseudo-labels", self.pseudo_labels, ("frozen", "detector"))
        _choice("detector-init", self.detector_init, ("random", "zero"))
        _check(self.evidence >= 0, f"evidence is {self.evidence}, must be 0 or more.")
        temperature = self.score_temperature
        _check(temperature > 0, f"score-temperature is {temperature}, must be above 0.")


@dataclass(frozen=True)
class ScoreSettings:
    """A zero-shot OOD score without settings of its own: max-logit, energy, MCM."""


@dataclass(frozen=True)
class NegLabelSettings:
    """NegLabel, arXiv 2403.20078, with its paper's settings."""

    words: str = ""  # name of a word list that was embedded by `extract --words`
    negatives: int = 10_000  # M, words that are mined
    groups: int = 100  # of negatives, whose scores are averaged
    percentile: float = 0.05  # η of the distance to the ID names

    def __post_init__(self) -> None:
        _check(self.negatives >= 1, f"negatives is {self.negatives}, must be 1 or more.")
        _check(self.groups >= 1, f"groups is {self.groups}, must be 1 or more.")
        _check(0 <= self.percentile <= 1, f"percentile is {self.percentile}, must be in [0, 1].")


@dataclass(frozen=True)
class ClipnSettings:
    """CLIPN, arXiv 2308.12213: needs the features of its own "no" text encoder."""

    no_text: str = ""  # .npy file (C, D), in the order of the class names


MethodSettings = ZsClipSettings | AdaNDSettings | ScoreSettings | NegLabelSettings | ClipnSettings

METHOD_SETTINGS: dict[str, type[Any]] = {
    "zs-clip": ZsClipSettings,
    "adand": AdaNDSettings,
    "max-logit": ScoreSettings,
    "energy": ScoreSettings,
    "mcm": ScoreSettings,
    "neglabel": NegLabelSettings,
    "clipn": ClipnSettings,
}

# AdaND injects noise as part of the method; ZS-CLIP only where it is asked to.
_METHOD_DEFAULTS: dict[str, dict[str, Any]] = {"adand": {"noise": "gaussian"}}

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
    _choice("method", method, tuple(METHOD_SETTINGS))
    _choice("preset", preset, tuple(PRESETS))
    flat = _METHOD_DEFAULTS.get(method, {}) | PRESETS[preset] | values
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


def noise_name(noise_type: str) -> str:
    """The name of the pool of one type of noise images."""
    return f"noise-{noise_type}"


def words_name(words: str) -> str:
    """The name of the features of a word list."""
    return f"words-{words}"


TINY = "tiny"
RANDOM_WEIGHTS = "none"


@dataclass(frozen=True)
class EncoderChoice:
    """Which encoder, in open_clip's words; the paper's main one by default (Sec. 5.1)."""

    model: str = "ViT-B-16"
    pretrained: str = "openai"  # a tag, a checkpoint's path, or "none": random weights
    precision: str = "fp32"
    folder: str | None = None  # of features made elsewhere, by an encoder that is not known here

    def __post_init__(self) -> None:
        _choice("precision", self.precision, ("fp32", "fp16", "bf16"))

    @property
    def slug(self) -> str:
        """The folder name of this encoder's features."""
        if self.folder:
            return self.folder
        weights = Path(self.pretrained).stem if self.is_file else self.pretrained
        complete = self.model == TINY or ":" in self.model  # names its weights already
        parts = [self.model] if complete else [self.model, weights]
        parts += [self.precision] if self.precision != "fp32" else []
        return re.sub(r"[^\w.-]+", "-", "-".join(parts))

    @property
    def is_file(self) -> bool:
        """Whether `pretrained` is a checkpoint's path and no tag."""
        return Path(self.pretrained).is_file()

    @property
    def options(self) -> str:
        """The options of the command line that name this encoder, empty for the default one."""
        words = []
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if value != f.default and not (f.name == "pretrained" and self.model == TINY):
                name = "encoder" if f.name == "folder" else f.name
                words.append(f"--{name} {shlex.quote(value)}")
        return " ".join(words)


@dataclass(frozen=True)
class ExtractSettings:
    """How images are encoded; none of it but the batch size can change a feature's bits."""

    batch_size: int = 128
    workers: int = field(default_factory=lambda: min(os.cpu_count() or 1, 16))  # decoding threads
    skip_broken: bool = False  # leave unreadable images out instead of stopping
    overwrite: bool = False  # replace a file that holds something else

    def __post_init__(self) -> None:
        _check(self.batch_size >= 1, f"batch-size is {self.batch_size}, must be 1 or more.")
        _check(self.workers >= 1, f"workers is {self.workers}, must be 1 or more.")
