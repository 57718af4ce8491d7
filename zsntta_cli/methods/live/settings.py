"""The settings and the facts of each live method.

Their equations are in the other files here, which import torch. A plan, a table of results and a
help page need only settings and facts.
"""

from dataclasses import dataclass

from zsntta_cli.methods.detectors.adand import AdaND
from zsntta_cli.methods.method import AT_ONCE, BY_SCORE, Live, MethodSettings
from zsntta_cli.settings.options import amount, check, choice, count, option, part, positive, share

BY_IMAGE, BY_STREAM = "image", "stream"
_SGD = {"optimizer": "sgd"}  # on ImageNet, as published
_RATE, _TENTS = "Learning rate of the optimiser.", "1e-4, of SGD 2.5e-4"
# Adam: β 0.9/0.999; SGD: Nesterov momentum 0.9 (ImageNet family). Tent's learning rate by both.
_LEARNING_RATE = {"adam": 1e-4, "sgd": 2.5e-4}
_OPTIMIZER = option("adam", "Optimiser of the adaptation.", choices=tuple(_LEARNING_RATE))


@dataclass(frozen=True)
class PipelineSettings(MethodSettings):
    """Sec. 3: the samples that a method adapts on."""

    pipeline: str = choice(
        "What it adapts on: items that it calls clean, truly clean items, or all items.",
        *("normal", "gt", "all"),
    )


@dataclass(frozen=True)
class BatchSettings(MethodSettings):
    """Tent's batches and optimiser."""

    batch_size: int = count(64, AT_ONCE)
    optimizer: str = _OPTIMIZER
    learning_rate: float | None = positive(None, _RATE, shown=_TENTS)

    def __post_init__(self) -> None:
        super().__post_init__()
        rate = self.learning_rate or _LEARNING_RATE[self.optimizer]
        object.__setattr__(self, "learning_rate", rate)


class ByProbability(Live):
    """A live method whose ID score is the largest probability, that of the class it names."""

    is_probability = True
    class_probability = BY_SCORE


class Tent(ByProbability):
    """Tent, arXiv 2006.10726: normalisation layers are adapted by the entropy of each batch."""

    class Settings(BatchSettings, PipelineSettings): ...

    place = "tent:run"
    imagenet = _SGD
    cites = ("wang2021tent",)
    cost = "takes a forward pass for each item, and a backward pass if it passes the filter"


class SoTTA(ByProbability):
    """SoTTA, arXiv 2310.10074: sharpness-aware entropy steps on a memory of confident samples."""

    class Settings(PipelineSettings):
        memory: int = count(64, "Number of samples in the memory, balanced by pseudo-class.")
        # appendix
        confidence: float = share(0.5, "Minimum ID score of a sample that enters the memory.")
        update_every: int = count(64, "L: number of items in a step, the length of the queue.")
        # It changes the time but no decision.
        batch_size: int | None = count(
            None, "Number of images in a pass of the encoder; none means all items of a step."
        )
        # As the released code does.
        late_start: bool = option(False, "Take the first step, and so all others, one item later.")
        learning_rate: float = positive(1e-4, _RATE)  # Adam
        weight_decay: float = amount(5e-4, "Weight decay of Adam.")
        rho: float = amount(0.05, "Radius of the sharpness-aware step.")
        frozen_blocks: str = choice(
            "Three blocks of a transformer that stay frozen.", "last", "9-11"
        )

        @property
        def at_once(self) -> int:
            """The items between two steps, which take one pass."""
            return self.update_every

    place = "sotta:run"
    official = {"late_start": True, "frozen_blocks": "9-11"}
    cites = ("gong2023sotta",)
    cost = "takes a pass for each item; two passes forward and back on the memory every L items"


class TPT(ByProbability):
    """TPT, arXiv 2209.07511: the prompt is tuned on views of each sample, then reset."""

    class Settings(PipelineSettings):
        views: int = count(64, "Number of views of an image: itself and augmented ones.")
        keep: float = part(0.1, "Share of the views that are used, the most confident ones.")
        # The paper does not use it for the ImageNet family.
        augmix: bool = option(True, "Use AugMix for the views.")
        learning_rate: float = positive(5e-3, _RATE)  # AdamW, weight decay 0.01
        steps: int = count(1, "Number of tuning steps for each sample.")
        # By the image an answer serves all streams. By the stream views also differ between seeds,
        # as in the paper.
        views_by: str = choice(
            "Draw new random views for each image, or for each stream.", BY_IMAGE, BY_STREAM
        )

    place = "tpt:run"
    imagenet = {"augmix": False}
    cites = ("shu2022test",)
    cost = "encodes the views of each item that passes the filter, and tunes the prompts on them"


class ROSITA(Live):
    """ROSITA, arXiv 2406.00481: one step for each sure image, by its class and its neighbours."""

    class Settings(MethodSettings):
        learning_rate: float = positive(1e-3, _RATE)  # SGD
        rosita_neighbours: int = count(
            5,
            "k: nearest features of a bank that count; the ID bank holds k times C.",
        )
        rosita_undesired: int = count(64, "Number of features of confident noise that are kept.")
        rosita_weight: float = amount(0.5, "Weight of the neighbours' loss.")

    place = "rosita:run"
    cites = ("sreenivas2025effectiveness",)
    cost = (
        "takes two forward passes for each item, and one more and one back if it is sure; "
        "keeps up to rosita-neighbours images times the number of classes, and rosita-undesired"
    )


class UniEnt(ByProbability):
    """UniEnt, arXiv 2404.06065: a mixture splits a batch; ID entropy falls, OOD entropy rises."""

    class Settings(BatchSettings):
        unient_marginal: float = amount(0.5, "Weight of the entropy of the mean prediction.")
        unient_ood: float = amount(0.5, "Weight of the entropy of the items that are called OOD.")
        unient_soft: bool = option(
            False, "UniEnt+: each item counts as both ID and OOD, by its probabilities."
        )

    place = "open_set:unient"
    imagenet = _SGD
    cites = ("gao2024unified",)
    cost = "takes a forward and a backward pass for each item; fits two Gaussians to each batch"


class OSTTA(ByProbability):
    """OSTTA, arXiv 2308.06879: entropy is lowered where the adapted model is more confident."""

    class Settings(BatchSettings):
        ostta_marginal: float = amount(0.5, "Weight of the entropy of the mean prediction.")

    place = "open_set:ostta"
    imagenet = _SGD
    cites = ("lee2023towards",)
    cost = "takes two forward passes for each item, one by the original encoder, and one back"


class AdaNDTent(Live):
    """Tent behind AdaND's detector (appendix, plug-and-play): the settings of both."""

    class Settings(AdaND.Settings):
        tent_batch_size: int = count(64, "Number of samples of the stream in a step of Tent.")
        optimizer: str = _OPTIMIZER
        tent_learning_rate: float | None = positive(
            None, "Learning rate of Tent's optimiser.", shown=_TENTS
        )
        detector_features: str = choice(
            "Features of the detector: the frozen encoder's, or those that Tent adapts.",
            *("frozen", "adapted"),
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            of_tent, size = self.tent_batch_size, self.batch_size
            check(
                self.detector_features == "frozen" or of_tent % size == 0,
                f"tent-batch-size is {of_tent}, must be a multiple of batch-size {size} if "
                "detector-features is adapted.",
            )
            object.__setattr__(self, "tent_learning_rate", self.tent.learning_rate)

        @property
        def tent(self) -> BatchSettings:
            """The settings of Tent."""
            return BatchSettings(self.tent_batch_size, self.optimizer, self.tent_learning_rate)

    place = "tent:behind_adand"
    defaults = AdaND.defaults
    imagenet = _SGD
    official = AdaND.official
    cites = AdaND.cites + Tent.cites
    cost = "keeps the same as adand; takes a forward and a backward pass for each clean item"
    is_probability = True
