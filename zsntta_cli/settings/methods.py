"""The settings of each method. A new method is a dataclass here and a line in METHOD_SETTINGS."""

from dataclasses import dataclass
from typing import Any

from zsntta_cli.settings.checks import check, check_choice

PIPELINES = ("normal", "gt", "all")
_LEARNING_RATE = {"adam": 1e-4, "sgd": 2.5e-4}  # Tent's, by optimiser


@dataclass(frozen=True)
class ZsClipSettings:
    """ZS-CLIP, Sec. 2: frozen CLIP and the threshold."""

    batch_size: int = 1

    def __post_init__(self) -> None:
        check(self.batch_size >= 1, f"batch-size is {self.batch_size}, must be 1 or more.")


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
        check(self.batch_size >= 1, f"batch-size is {self.batch_size}, must be 1 or more.")
        check(self.update_every >= 1, f"update-every is {self.update_every}, must be 1 or more.")
        check(self.warmup >= 0, f"warmup is {self.warmup}, must be 0 or more.")
        check(self.learning_rate > 0, f"learning-rate is {self.learning_rate}, must be above 0.")
        check_choice("pseudo-labels", self.pseudo_labels, ("frozen", "detector"))
        check_choice("detector-init", self.detector_init, ("random", "zero"))
        check(self.evidence >= 0, f"evidence is {self.evidence}, must be 0 or more.")
        temperature = self.score_temperature
        check(temperature > 0, f"score-temperature is {temperature}, must be above 0.")


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
        check(self.negatives >= 1, f"negatives is {self.negatives}, must be 1 or more.")
        check(self.groups >= 1, f"groups is {self.groups}, must be 1 or more.")
        check(0 <= self.percentile <= 1, f"percentile is {self.percentile}, must be in [0, 1].")


@dataclass(frozen=True)
class ClipnSettings:
    """CLIPN, arXiv 2308.12213: needs the features of its own "no" text encoder."""

    no_text: str = ""  # .npy file (C, D), in the order of the class names


@dataclass(frozen=True)
class TDASettings:
    """TDA: positive and negative cache (arXiv 2403.18293); noise is decided as ZS-CLIP does."""

    batch_size: int = 1  # of the noise threshold only; the caches always go item by item
    positive_shots: int = 3  # samples per class
    positive_alpha: float = 2.0  # weight of the positive cache's logits
    positive_beta: float = 5.0  # sharpness: a key at cosine A has the weight exp(-beta (1 - A))
    negative_shots: int = 2
    negative_alpha: float = 0.117
    negative_beta: float = 1.0
    entropy_low: float = 0.2  # only samples with low < entropy / log2(C) < high are negatives
    entropy_high: float = 0.5
    mask_low: float = 0.03  # a negative speaks against classes with low < probability < high
    mask_high: float = 1.0

    def __post_init__(self) -> None:
        check(self.batch_size >= 1, f"batch-size is {self.batch_size}, must be 1 or more.")
        for cache in ("positive", "negative"):
            shots, alpha, beta = (getattr(self, f"{cache}_{f}") for f in ("shots", "alpha", "beta"))
            check(shots >= 0, f"{cache}-shots is {shots}, must be 0 or more.")
            check(alpha >= 0, f"{cache}-alpha is {alpha}, must be 0 or more.")
            check(beta >= 0, f"{cache}-beta is {beta}, must be 0 or more.")
        for name in ("entropy", "mask"):
            low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
            message = f"{name}-low is {low} and {name}-high {high}, must be 0 <= low < high <= 1."
            check(0 <= low < high <= 1, message)


@dataclass(frozen=True)
class AdaNDTDASettings(AdaNDSettings, TDASettings):
    """TDA's classes behind AdaND's detector: the settings of both."""

    def __post_init__(self) -> None:
        AdaNDSettings.__post_init__(self)
        TDASettings.__post_init__(self)


@dataclass(frozen=True)
class PipelineSettings:
    """Sec. 3: which samples a method adapts on."""

    # "normal": those called clean; "gt": the truly clean; "all" of them
    pipeline: str = "normal"

    def __post_init__(self) -> None:
        check_choice("pipeline", self.pipeline, PIPELINES)


@dataclass(frozen=True)
class TentSettings(PipelineSettings):
    """Tent, arXiv 2006.10726: entropy of a batch, the image tower's normalisation layers."""

    batch_size: int = 64
    optimizer: str = "adam"  # β 0.9/0.999; or "sgd": Nesterov momentum 0.9 (ImageNet family)
    learning_rate: float | None = None  # None: 1e-4 for Adam, 2.5e-4 for SGD

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.batch_size >= 1, f"batch-size is {self.batch_size}, must be 1 or more.")
        check_choice("optimizer", self.optimizer, tuple(_LEARNING_RATE))
        if self.learning_rate is None:
            object.__setattr__(self, "learning_rate", _LEARNING_RATE[self.optimizer])
        _check_rate(self)


@dataclass(frozen=True)
class SottaSettings(PipelineSettings):
    """SoTTA, arXiv 2310.10074: a memory of confident samples, sharpness-aware entropy."""

    memory: int = 64  # samples, balanced by pseudo-class
    confidence: float = 0.5  # the least MCM score that enters the memory (appendix)
    update_every: int = 64  # items to a step
    late_start: bool = False  # the first item counted to no step, as the released code does
    learning_rate: float = 1e-4  # Adam
    weight_decay: float = 5e-4
    rho: float = 0.05  # radius of the sharpness-aware step

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.memory >= 1, f"memory is {self.memory}, must be 1 or more.")
        check(0 <= self.confidence <= 1, f"confidence is {self.confidence}, must be in [0, 1].")
        check(self.update_every >= 1, f"update-every is {self.update_every}, must be 1 or more.")
        check(self.weight_decay >= 0, f"weight-decay is {self.weight_decay}, must be 0 or more.")
        check(self.rho >= 0, f"rho is {self.rho}, must be 0 or more.")
        _check_rate(self)


@dataclass(frozen=True)
class TptSettings(PipelineSettings):
    """TPT, arXiv 2209.07511: the prompt's context tuned on views of each sample, then reset."""

    views: int = 64  # the image itself and its augmented views
    keep: float = 0.1  # share of the views, the most confident ones
    augmix: bool = True  # AugMix of the views; the paper's without it for the ImageNet family
    learning_rate: float = 5e-3  # AdamW, weight decay 0.01
    steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.views >= 1, f"views is {self.views}, must be 1 or more.")
        check(0 < self.keep <= 1, f"keep is {self.keep}, must be in (0, 1].")
        check(self.steps >= 1, f"steps is {self.steps}, must be 1 or more.")
        _check_rate(self)


@dataclass(frozen=True)
class AdaNDTentSettings(AdaNDSettings):
    """Tent behind AdaND's detector (appendix, plug-and-play): the settings of both."""

    tent_batch_size: int = 64
    optimizer: str = "adam"
    tent_learning_rate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tent_learning_rate", self.tent.learning_rate)

    @property
    def tent(self) -> TentSettings:
        """Tent's part."""
        return TentSettings("normal", self.tent_batch_size, self.optimizer, self.tent_learning_rate)


def _check_rate(settings: TentSettings | SottaSettings | TptSettings) -> None:
    """A learning rate is above 0."""
    rate = settings.learning_rate
    check(rate is not None and rate > 0, f"learning-rate is {rate}, must be above 0.")


MethodSettings = (
    ZsClipSettings | AdaNDSettings | TDASettings | ScoreSettings | NegLabelSettings | ClipnSettings
    | TentSettings | SottaSettings | TptSettings
)  # fmt: skip

METHOD_SETTINGS: dict[str, type[Any]] = {
    "zs-clip": ZsClipSettings,
    "adand": AdaNDSettings,
    "tda": TDASettings,
    "adand+tda": AdaNDTDASettings,
    "max-logit": ScoreSettings,
    "energy": ScoreSettings,
    "mcm": ScoreSettings,
    "neglabel": NegLabelSettings,
    "clipn": ClipnSettings,
    "tent": TentSettings,
    "sotta": SottaSettings,
    "tpt": TptSettings,
    "adand+tent": AdaNDTentSettings,
}
