"""The settings of each live method.

They stand beside the methods, whose files import torch: a plan, a table of results and a help page
need the settings alone.
"""

from dataclasses import dataclass

from zsntta_cli.methods.detectors.adand import AdaNDSettings
from zsntta_cli.methods.settings import ABOVE_ZERO, FROM_ONE, FROM_ZERO, SHARE, MethodSettings
from zsntta_cli.settings.options import Range, check, option

PIPELINES = ("normal", "gt", "all")
BY_IMAGE, BY_STREAM = "image", "stream"
_LEARNING_RATE = {"adam": 1e-4, "sgd": 2.5e-4}  # Tent's, by optimiser
_UNEVEN = (
    "tent-batch-size is {} and batch-size {}: with adapted detector features it must be a multiple."
)


@dataclass(frozen=True)
class PipelineSettings(MethodSettings):
    """Sec. 3: the samples that a method adapts on."""

    pipeline: str = option(
        "normal",
        "What it adapts on: items that it calls clean, truly clean items, or all items.",
        choices=PIPELINES,
    )


@dataclass(frozen=True)
class TentSettings(PipelineSettings):
    """Tent, arXiv 2006.10726: normalisation layers are adapted by the entropy of each batch."""

    batch_size: int = option(64, "Items that are decided on at once.", within=FROM_ONE)
    # Adam: β 0.9/0.999; SGD: Nesterov momentum 0.9 (ImageNet family).
    optimizer: str = option("adam", "Optimiser of the adaptation.", choices=tuple(_LEARNING_RATE))
    # None: 1e-4 for Adam, 2.5e-4 for SGD.
    learning_rate: float | None = option(
        None, "Learning rate of the optimiser.", within=ABOVE_ZERO, shown="1e-4, of SGD 2.5e-4"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learning_rate is None:
            object.__setattr__(self, "learning_rate", _LEARNING_RATE[self.optimizer])


@dataclass(frozen=True)
class SottaSettings(PipelineSettings):
    """SoTTA, arXiv 2310.10074: sharpness-aware entropy steps on a memory of confident samples."""

    memory: int = option(64, "Samples in the memory, balanced by pseudo-class.", within=FROM_ONE)
    confidence: float = option(  # appendix
        0.5, "Smallest ID score of a sample that enters the memory.", within=SHARE
    )
    update_every: int = option(
        64, "L: items in a step, which is the length of the queue.", within=FROM_ONE
    )
    # Of an encoder pass: it changes the time but no decision; none: all items of a step.
    batch_size: int | None = option(None, "Items that are decided on at once.", within=FROM_ONE)
    # As the released code does.
    late_start: bool = option(False, "Leave the first item or batch out of all steps.")
    learning_rate: float = option(
        1e-4, "Learning rate of the optimiser.", within=ABOVE_ZERO
    )  # Adam
    weight_decay: float = option(5e-4, "Weight decay of Adam.", within=FROM_ZERO)
    rho: float = option(0.05, "Radius of the sharpness-aware step.", within=FROM_ZERO)
    frozen_blocks: str = option(  # the released code's are 9-11 of a ViT-L too
        "last", "Three blocks of a transformer that are not adapted.", choices=("last", "9-11")
    )

    @property
    def at_once(self) -> int:
        """The items between two steps, which take one pass."""
        return self.update_every


@dataclass(frozen=True)
class TptSettings(PipelineSettings):
    """TPT, arXiv 2209.07511: the prompt is tuned on views of each sample, then reset."""

    views: int = option(
        64, "Views of an image: the image itself and augmented ones.", within=FROM_ONE
    )
    keep: float = option(
        0.1,
        "Share of the views that is used: the most confident ones.",
        within=Range(above=0, most=1),
    )
    # The paper does not use it for the ImageNet family.
    augmix: bool = option(True, "Use AugMix for the views.")
    learning_rate: float = option(  # AdamW, weight decay 0.01
        5e-3, "Learning rate of the optimiser.", within=ABOVE_ZERO
    )
    steps: int = option(1, "Steps of tuning for each sample.", within=FROM_ONE)
    # By the image an answer serves all streams. By the stream views also differ between seeds, as
    # in the paper.
    views_by: str = option(
        BY_IMAGE, "Views are drawn anew for each image, or for each stream.",
        choices=(BY_IMAGE, BY_STREAM),
    )  # fmt: skip


@dataclass(frozen=True)
class OpenSetSettings(MethodSettings):
    """Tent's batches and optimiser, with a loss that chooses its samples itself."""

    batch_size: int = option(64, "Items that are decided on at once.", within=FROM_ONE)
    optimizer: str = option("adam", "Optimiser of the adaptation.", choices=tuple(_LEARNING_RATE))
    learning_rate: float | None = option(
        None, "Learning rate of the optimiser.", within=ABOVE_ZERO, shown="1e-4, of SGD 2.5e-4"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "learning_rate", self.tent.learning_rate)

    @property
    def tent(self) -> TentSettings:
        """The settings of Tent."""
        return TentSettings("all", self.batch_size, self.optimizer, self.learning_rate)


@dataclass(frozen=True)
class UnientSettings(OpenSetSettings):
    """UniEnt, arXiv 2404.06065: a mixture splits a batch; ID entropy falls, OOD entropy rises."""

    unient_marginal: float = option(
        0.5, "Weight of the entropy of the mean prediction.", within=FROM_ZERO
    )
    unient_ood: float = option(
        0.5, "Weight of the entropy of the items that are called OOD.", within=FROM_ZERO
    )
    unient_soft: bool = option(
        False, "UniEnt+: each item counts as both ID and OOD, by its probabilities."
    )


@dataclass(frozen=True)
class OsttaSettings(OpenSetSettings):
    """OSTTA, arXiv 2308.06879: entropy is lowered where the adapted model is more confident."""

    ostta_marginal: float = option(
        0.5, "Weight of the entropy of the mean prediction.", within=FROM_ZERO
    )


@dataclass(frozen=True)
class RositaSettings(MethodSettings):
    """ROSITA, arXiv 2406.00481: one step for each sure image, by its class and its neighbours."""

    learning_rate: float = option(1e-3, "Learning rate of the optimiser.", within=ABOVE_ZERO)  # SGD
    rosita_neighbours: int = option(
        5,
        "Nearest features of a bank in a step; the bank keeps as many of each class.",
        within=FROM_ONE,
    )
    rosita_undesired: int = option(
        64, "Features of confident noise that are kept.", within=FROM_ONE
    )
    rosita_weight: float = option(0.5, "Weight of the neighbours' loss.", within=FROM_ZERO)


@dataclass(frozen=True)
class AdaNDTentSettings(AdaNDSettings):
    """Tent behind AdaND's detector (appendix, plug-and-play): the settings of both."""

    tent_batch_size: int = option(64, "Samples of the stream in a step of Tent.", within=FROM_ONE)
    optimizer: str = option("adam", "Optimiser of the adaptation.", choices=tuple(_LEARNING_RATE))
    tent_learning_rate: float | None = option(
        None, "Learning rate of Tent's optimiser.", within=ABOVE_ZERO, shown="1e-4, of SGD 2.5e-4"
    )
    detector_features: str = option(
        "frozen",
        "Features of the detector: the frozen encoder's, or those that Tent adapts.",
        choices=("frozen", "adapted"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.detector_features == "adapted":  # in whole batches of the detector
            whole = self.tent_batch_size % self.batch_size == 0
            check(whole, _UNEVEN.format(self.tent_batch_size, self.batch_size))
        object.__setattr__(self, "tent_learning_rate", self.tent.learning_rate)

    @property
    def tent(self) -> TentSettings:
        """The settings of Tent."""
        return TentSettings("normal", self.tent_batch_size, self.optimizer, self.tent_learning_rate)
