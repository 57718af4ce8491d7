"""The settings of methods: dataclasses whose fields are options on the command line.

The settings of words/ and live/ are in those folders.
"""

from dataclasses import dataclass

from zsntta_cli.settings.options import Range, Settings, check, option

_FROM_ONE, _FROM_ZERO, _ABOVE_ZERO = Range(least=1), Range(least=0), Range(above=0)
_SHARE = Range(least=0, most=1)
WORDS = (
    "Word list of `extract --words`: wordnet, NAME or NAME,NAME; by default the one that is "
    "cached (ridge: none)."
)
GAP = (
    "g: share of the interval from the threshold to 0, or to 1, in which items are not learned "
    "from."
)


@dataclass(frozen=True)
class ZsClipSettings(Settings):
    """ZS-CLIP, Sec. 2: frozen CLIP with an online threshold on its noise score."""

    batch_size: int = option(1, "Items that are decided on at once.", within=_FROM_ONE)


@dataclass(frozen=True)
class AdaNDSettings(Settings):
    """AdaND, Sec. 4 and Algorithm 1: a linear noise detector learns from ZS-CLIP's decisions."""

    batch_size: int = option(1, "Items that are decided on at once.", within=_FROM_ONE)
    # At batch sizes above 1 each batch is one queue.
    update_every: int = option(
        128, "L: items in a step, which is the length of the queue.", within=_FROM_ONE
    )
    warmup: int = option(  # Sec. 5.1
        10, "N: steps before the detector decides.", within=_FROM_ZERO
    )
    learning_rate: float = option(  # Adam, no weight decay (Sec. 5.1)
        5e-4, "Learning rate of the optimiser.", within=_ABOVE_ZERO
    )
    reevaluate: bool = option(  # Sec. 4.1
        True, "Decide on the items that trigger an update after the update."
    )
    # It concerns the first item (batch size 1) or the first batch, as in the released code.
    late_start: bool = option(False, "Leave the first item or batch out of all steps.")
    pseudo_labels: str = option(  # appendix
        "frozen",
        "Pseudo-labels of the detector: ZS-CLIP's, or in stage 2 its own.",
        choices=("frozen", "detector"),
    )
    detector_init: str = option(
        "random",
        "Initial weights of the detector: PyTorch's default, or zero.",
        choices=("random", "zero"),
    )
    evidence: float = option(
        0.0, "Weight of the frozen model's log odds in the detector's logit.", within=_FROM_ZERO
    )
    score_temperature: float = option(
        1.0,
        "Temperature of the sigmoid of the scores from which thresholds are found.",
        within=_ABOVE_ZERO,
    )
    gap: float = option(0.0, GAP, within=_SHARE)

    @property
    def queue_items(self) -> int:
        """The number of items in an update: L at batch size 1, and else a batch."""
        return self.update_every if self.batch_size == 1 else self.batch_size

    @property
    def stage1_items(self) -> int:
        """The number of items that ZS-CLIP decides: those up to the N-th optimisation step."""
        late = (1 if self.batch_size == 1 else self.queue_items) if self.late_start else 0
        return self.warmup * self.queue_items + late


@dataclass(frozen=True)
class RidgeSettings(Settings):
    """Ridge: our noise detector without labels, with the same values for all sets and encoders."""

    ridge_first: int = option(
        64,
        "Items that ZS-CLIP decides at first; fewest items between updates.",
        within=Range(least=2),
    )
    ridge_ring: int = option(
        1024, "M: last items from which thresholds are found.", within=Range(least=2)
    )
    ridge_tail: float = option(
        6.0, "Skewness + kurtosis of b above which noise is rare and far.", within=_ABOVE_ZERO
    )
    ridge_tail_deviations: float = option(
        3.0,
        "Distance of the threshold from the median for rare noise, in deviations.",
        within=_FROM_ZERO,
    )
    ridge_prior: float = option(
        0.3, "Spread of the class prior up to which it is corrected.", within=_FROM_ZERO
    )
    ridge_order: bool = option(
        True, "Use the last classes if neighbouring items share a class more often than by chance."
    )
    words: str = option("", WORDS)  # for what else an image may show; without words there is no t
    cautious: bool = option(
        False, "Call an image noise only where there is evidence of noise of another kind."
    )


@dataclass(frozen=True)
class CmaSettings(Settings):
    """CMA, arXiv 2405.16766: neutral texts stand beside the classes in the softmax."""

    words: str = option("cma", WORDS)
    cma_times: int = option(
        1, "k: the neutral texts are repeated in turn to k C texts.", within=_FROM_ONE
    )


@dataclass(frozen=True)
class OoddSettings(Settings):
    """OODD, arXiv 2503.10468: items are compared with a dictionary of those of lowest ID score."""

    batch_size: int = option(1, "Items that are decided on at once.", within=_FROM_ONE)
    oodd_items: int = option(2048, "N: items in the dictionary.", within=Range(least=2))
    oodd_neighbour: int = option(
        5, "K: rank of the nearest item of the dictionary that counts.", within=_FROM_ONE
    )
    oodd_temperature: float | None = option(  # the released code takes 1
        None,
        "Temperature of q, the softmax over cosines; none: 1 / logit scale.",
        within=Range(least=1e-4),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        message = (
            f"oodd-items is {self.oodd_items}, must be above oodd-neighbour, {self.oodd_neighbour}."
        )
        check(self.oodd_items > self.oodd_neighbour, message)


@dataclass(frozen=True)
class SydeSettings(Settings):
    """Syde (its released code) without pixels: AdaND's detector, labels from visual prototypes."""

    update_every: int = option(
        128, "L: items in a step, which is the length of the queue.", within=_FROM_ONE
    )
    warmup: int = option(10, "N: steps before the detector decides.", within=_FROM_ZERO)
    learning_rate: float = option(1e-3, "Learning rate of the optimiser.", within=_ABOVE_ZERO)
    syde_shots: int = option(10, "Images of each class in the ID memory.", within=_FROM_ONE)
    syde_gap: float = option(
        0.5, "Share of the interval from the threshold to 0, and to 1, in which items get no "
        "label.",
        within=Range(least=0, most=1),
    )  # fmt: skip
    syde_entropy: float = option(  # more than ln C: idle up to 54 classes
        4.0, "Entropy, in nats, above which an item is left out of all steps.", within=_FROM_ZERO
    )
    syde_visual: float = option(
        0.2,
        "Weight of the visual probabilities in the decision on the class.",
        within=Range(least=0, most=1),
    )
    syde_map: int = option(15, "Cells on each side of the map of noise.", within=_FROM_ONE)
    syde_map_steps: int = option(100, "Steps of the map for each full queue.", within=_FROM_ONE)
    syde_map_width: float = option(
        2.0, "Initial width of a step of the map, in cells.", within=_ABOVE_ZERO
    )
    syde_map_rate: float = option(
        0.05, "Initial learning rate of the map's steps.", within=Range(above=0, most=1)
    )

    @property
    def stage1_items(self) -> int:
        """The number of items that ZS-CLIP decides: those up to the N-th step."""
        return self.warmup * self.update_every


@dataclass(frozen=True)
class EtltSettings(Settings):
    """ETLT, arXiv 2207.08210: the noise score is regressed on the features of the whole stream."""

    etlt_penalty: float = option(
        1e-5, "Ridge penalty of the least squares, in mean eigenvalues.", within=_ABOVE_ZERO
    )
    etlt_dropped: float = option(
        0.0, "Share of the items, those with the largest residuals, that a second fit leaves out.",
        within=Range(least=0, below=1),
    )  # fmt: skip


@dataclass(frozen=True)
class TDASettings(Settings):
    """TDA, arXiv 2403.18293: two caches of samples that speak for, or against, a class."""

    # It concerns only the threshold; the caches are always updated item by item.
    batch_size: int = option(1, "Items that are decided on at once.", within=_FROM_ONE)
    positive_shots: int = option(
        3, "Samples of each class in the positive cache.", within=_FROM_ZERO
    )
    positive_alpha: float = option(2.0, "Weight of the positive cache's logits.", within=_FROM_ZERO)
    positive_beta: float = option(  # a key at cosine A has the weight exp(-beta (1 - A))
        5.0, "Sharpness of the positive cache's weights.", within=_FROM_ZERO
    )
    negative_shots: int = option(
        2, "Samples of each class in the negative cache.", within=_FROM_ZERO
    )
    negative_alpha: float = option(
        0.117, "Weight of the negative cache's logits.", within=_FROM_ZERO
    )
    negative_beta: float = option(
        1.0, "Sharpness of the negative cache's weights.", within=_FROM_ZERO
    )
    # Only samples with low < entropy / log2(C) < high are negatives …
    entropy_low: float = option(0.2, "Smallest entropy of a negative sample.", within=_SHARE)
    entropy_high: float = option(0.5, "Largest entropy of a negative sample.", within=_SHARE)
    # … which speak against classes with low < probability < high.
    mask_low: float = option(
        0.03, "Smallest probability against which a negative sample counts.", within=_SHARE
    )
    mask_high: float = option(
        1.0, "Largest probability against which a negative sample counts.", within=_SHARE
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("entropy", "mask"):
            low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
            message = f"{name}-low is {low} and {name}-high {high}, must be 0 <= low < high <= 1."
            check(0 <= low < high <= 1, message)


@dataclass(frozen=True)
class OGASettings(Settings):
    """OGA, arXiv 2501.04352: each class has a Gaussian, learned from its most certain samples.

    The values are those of its released code for all sets.
    """

    oga_shots: int = option(8, "Samples of each class in the memory.", within=_FROM_ONE)
    oga_scale: float = option(0.05, "τ: scale of the Gaussians' log densities.", within=_FROM_ZERO)
    oga_every: int = option(  # 128 is faster, but loses up to 3.4 points of Acc_S
        1, "Items that are offered between two updates of the covariance.", within=_FROM_ONE
    )
    # The released code divides sums by the capacity, even if a class has fewer samples.
    oga_short_means: bool = option(
        False, "Divide the sums of a class by its capacity instead of by its count."
    )


@dataclass(frozen=True)
class OnZetaSettings(Settings):
    """OnZeta, arXiv 2408.13320: class weights and visual proxies are learned online.

    The values are its paper's for ImageNet.
    """

    onzeta_balance: float = option(
        1.0, "α: smallest share of each class, in units of 1/C; 1: equal shares.", within=_SHARE
    )
    onzeta_prior_rate: float = option(20.0, "Step size of the class weights ρ.", within=_FROM_ZERO)
    onzeta_proxy_rate: float = option(0.5, "Step size of the visual proxies w.", within=_FROM_ZERO)
    onzeta_temperature: float = option(
        0.04, "Temperature of the visual proxies' softmax.", within=_ABOVE_ZERO
    )
    onzeta_mix: float = option(0.8, "β: largest weight of the visual proxies.", within=_SHARE)
    # The released code uses the length of the stream, which no online method knows. This is the
    # size of the paper's validation set of ImageNet. 2,000 loses up to 5 points of Acc_S.
    onzeta_mix_items: int = option(
        50_000,
        "Items after which the proxies have this weight; 0: all items of the stream.",
        within=_FROM_ZERO,
    )


@dataclass(frozen=True)
class DLASettings(Settings):
    """DLA, with ImageNet's value: the logits of often predicted classes are lowered."""

    dla_strength: float = option(0.8, "α: strength of the lowering.", within=_FROM_ZERO)


@dataclass(frozen=True)
class DMNSettings(Settings):
    """DMN-weak, with the released values: each class keeps its most certain images in a memory."""

    dmn_shots: int = option(50, "Images that are kept for each class.", within=_FROM_ONE)
    dmn_sharpness: float = option(
        5.5, "β: sharpness of the weights by similarity.", within=_FROM_ZERO
    )


ALL_ITEMS, ACCEPTED = "all", "accepted"  # the items that a block classifier classifies


@dataclass(frozen=True)
class BlockSettings(Settings):
    """The settings that classifiers of whole blocks of items share."""

    block: int = option(64, "Items that are classified together.", within=_FROM_ONE)
    block_takes: str = option(
        ALL_ITEMS, "Items of a block that are classified together: all, or those that the "
        "detector accepts.",
        choices=(ALL_ITEMS, ACCEPTED),
    )  # fmt: skip


@dataclass(frozen=True)
class GaussianBlockSettings(BlockSettings):
    """The settings that StatA and TransCLIP share, with the values of StatA's paper."""

    block_neighbours: int = option(
        3, "Nearest other items that influence an item.", within=_FROM_ONE
    )
    block_smoothing: float = option(1.0, "λ: weight of the neighbours.", within=_FROM_ZERO)
    block_steps: int = option(10, "Number of fits of the classes to a block.", within=_FROM_ZERO)


@dataclass(frozen=True)
class StatASettings(GaussianBlockSettings):
    """StatA: Gaussians of the classes are fitted to a block and held near the texts."""


@dataclass(frozen=True)
class TransCLIPSettings(GaussianBlockSettings):
    """TransCLIP as in StatA's paper: Gaussians of one variance are fitted to a block alone."""


@dataclass(frozen=True)
class LAMESettings(BlockSettings):
    """LAME: the probabilities of a block are smoothed over neighbouring items."""

    lame_neighbours: int = option(
        5, "Nearest other items that influence an item.", within=_FROM_ONE
    )
    lame_strength: float = option(1.0, "λ: weight of the neighbours.", within=_FROM_ZERO)
    lame_steps: int = option(100, "Largest number of steps for a block.", within=_FROM_ONE)


@dataclass(frozen=True)
class BCASettings(Settings):
    """BCA, arXiv 2503.09248: class means and a prior of the classes move with the samples.

    The values are those of another implementation; the authors' code does not confirm them.
    """

    bca_mean_least: float = option(
        0.05, "Probability above which an item updates the mean of its class.", within=_SHARE
    )
    bca_mean_items: float = option(
        20_000.0, "Number of items for which the text of a class counts.", within=_ABOVE_ZERO
    )
    bca_prior_least: float = option(
        0.65, "Probability above which an item updates the prior.", within=_SHARE
    )
    bca_prior_items: float = option(
        1.0, "Number of items for which the initial prior counts.", within=_FROM_ZERO
    )


@dataclass(frozen=True)
class DOTASettings(Settings):
    """DOTA, arXiv 2409.19375: each class has a Gaussian, learned from the frozen soft labels.

    The paper chooses values for each set; these are from another implementation.
    """

    dota_variance: float = option(1e-4, "σ: initial variance of a class.", within=_ABOVE_ZERO)
    dota_shrinkage: float = option(
        1e-3, "ε: share of the identity in the covariance.", within=Range(above=0, most=1)
    )
    dota_rate: float = option(
        0.02, "ρ: weight that the Gaussians gain with each item of each class.", within=_FROM_ZERO
    )
    dota_weight: float = option(0.1, "η: largest weight of the Gaussians.", within=_FROM_ZERO)
    dota_every: int = option(
        1, "Items that are offered between two updates of the covariance.", within=_FROM_ONE
    )
    dota_memory: int = option(
        512,
        "Memory for covariances of the classes, in MB; beyond it one covariance serves all.",
        within=_FROM_ZERO,
    )

    def pools(self, classes: int, dim: int) -> bool:
        """Whether covariances of C classes of D dims would exceed the memory for them."""
        return 4 * classes * dim**2 > self.dota_memory * 2**20

    def note(self, classes: int, dim: int) -> str:
        """The difference from the paper on C classes of D dims, or "" if there is none."""
        if not self.pools(classes, dim):
            return ""
        return (
            f"has one covariance of all classes, not the paper's one of each: those of "
            f"{classes:,} classes of {dim:,} dims take more than {self.dota_memory:,} MB "
            f"(dota-memory)"
        )


@dataclass(frozen=True)
class MaxLogitSettings(Settings):
    """Max-logit, arXiv 1911.11132: the largest scaled cosine of an image and a class."""


@dataclass(frozen=True)
class EnergySettings(Settings):
    """Energy, arXiv 2010.03759: minus the free energy, log Σ exp of the scaled cosines."""


@dataclass(frozen=True)
class LogitGapSettings(Settings):
    """LogitGap, arXiv 2510.20134: the largest logit minus the mean of the next N."""

    logitgap_share: float = option(
        0.2, "N: number of other classes in the gap, as a share of the classes.", within=_SHARE
    )
    logitgap_others: int | None = option(  # `official`: 88 on ImageNet and 5 on CIFAR-10
        None, "N: number of other classes in the gap; none: by the share.", within=_FROM_ONE
    )


@dataclass(frozen=True)
class McmSettings(Settings):
    """MCM, arXiv 2211.13445: the largest softmax value of cosines over a temperature."""

    # Table 5 of the ZS-NTTA paper quotes MCM's own results, for temperature 1. None: its Eq. 1.
    temperature: float | None = option(
        None,
        "Temperature of the softmax over cosines; none: 1 / logit scale.",
        within=Range(least=1e-4),
    )


@dataclass(frozen=True)
class ClipnSettings(Settings):
    """CLIPN, arXiv 2308.12213: it needs the features of its own "no" text encoder."""

    no_text: str = option(
        "", "File .npy of 'no' text features (C, D), in the order of the classes."
    )
