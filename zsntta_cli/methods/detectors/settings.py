"""The settings of the newer detectors: those that learn from the stream, and CMA's prompts."""

from dataclasses import dataclass

from zsntta_cli.methods.words.settings import WORDS
from zsntta_cli.settings.options import Range, Settings, check, option

_FROM_ONE, _FROM_ZERO, _ABOVE_ZERO = Range(least=1), Range(least=0), Range(above=0)


@dataclass(frozen=True)
class CmaSettings(Settings):
    """CMA, arXiv 2405.16766: neutral texts beside the classes."""

    word_prompts = "run"  # no option: its texts are whole sentences

    words: str = option("cma", WORDS)
    cma_times: int = option(1, "k: k C neutral texts, repeated in turn.", within=_FROM_ONE)


@dataclass(frozen=True)
class OoddSettings(Settings):
    """OODD, arXiv 2503.10468: a dictionary of the items that look least like ID."""

    batch_size: int = option(1, "Items that are decided on at once.", within=_FROM_ONE)
    oodd_items: int = option(2048, "N: items in the dictionary.", within=Range(least=2))
    oodd_neighbour: int = option(5, "K: the nearest of them that counts.", within=_FROM_ONE)

    def __post_init__(self) -> None:
        super().__post_init__()
        message = (
            f"oodd-items is {self.oodd_items}, must be above oodd-neighbour, {self.oodd_neighbour}."
        )
        check(self.oodd_items > self.oodd_neighbour, message)


@dataclass(frozen=True)
class SydeSettings(Settings):
    """Syde (its released code) without pixels: AdaND's detector, labels from visual prototypes."""

    update_every: int = option(128, "L: items to a step, the queue.", within=_FROM_ONE)
    warmup: int = option(10, "N: steps before the detector decides.", within=_FROM_ZERO)
    learning_rate: float = option(1e-3, "Of the optimiser.", within=_ABOVE_ZERO)
    syde_shots: int = option(10, "Images a class in the ID memory.", within=_FROM_ONE)
    syde_gap: float = option(
        0.5, "Share of the way from the threshold to 0 and 1 without label.",
        within=Range(least=0, most=1),
    )  # fmt: skip
    syde_entropy: float = option(  # more than ln C: idle up to 54 classes
        4.0, "Nats above which an item is in no step.", within=_FROM_ZERO
    )
    syde_visual: float = option(
        0.2, "Weight of the visual probabilities in the class.", within=Range(least=0, most=1)
    )
    syde_map: int = option(15, "Cells on a side of the map of noise.", within=_FROM_ONE)
    syde_map_steps: int = option(100, "Of the map, a full queue.", within=_FROM_ONE)
    syde_map_width: float = option(2.0, "Cells, of a step's pull, at first.", within=_ABOVE_ZERO)
    syde_map_rate: float = option(
        0.05, "Of the map's steps, at first.", within=Range(above=0, most=1)
    )


@dataclass(frozen=True)
class EtltSettings(Settings):
    """ETLT, arXiv 2207.08210: the noise score regressed on the features of the whole stream."""

    etlt_penalty: float = option(
        1e-5, "Ridge of the least squares, in mean eigenvalues.", within=_ABOVE_ZERO
    )
    etlt_dropped: float = option(
        0.0, "Share with the largest residuals that a second fit leaves out.",
        within=Range(least=0, below=1),
    )  # fmt: skip
