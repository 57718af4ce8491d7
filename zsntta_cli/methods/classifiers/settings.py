"""The settings of classifiers that adapt; TDA's stand beside the methods that it came with."""

from dataclasses import dataclass

from zsntta_cli.settings.options import Range, Settings, option

_FROM_ONE, _FROM_ZERO, _ABOVE_ZERO = Range(least=1), Range(least=0), Range(above=0)
_SHARE = Range(least=0, most=1)


@dataclass(frozen=True)
class OGASettings(Settings):
    """OGA, arXiv 2501.04352, with the values that its released code has for all sets."""

    oga_shots: int = option(8, "Samples a class in the memory.", within=_FROM_ONE)
    oga_scale: float = option(0.05, "τ: of the Gaussians' log densities.", within=_FROM_ZERO)
    oga_every: int = option(
        128, "Offered items between two covariances; 1: as published.", within=_FROM_ONE
    )
    # The released code divides sums by the capacity, however few samples a class has.
    oga_short_means: bool = option(False, "Means are sums over the capacity.")


@dataclass(frozen=True)
class OnZetaSettings(Settings):
    """OnZeta, arXiv 2408.13320, with its paper's values for ImageNet."""

    onzeta_balance: float = option(
        1.0, "α: share of 1/C that each class has at least; 1: equal shares.", within=_SHARE
    )
    onzeta_prior_rate: float = option(20.0, "Step of the class weights ρ.", within=_FROM_ZERO)
    onzeta_proxy_rate: float = option(0.5, "Step of the visual proxies w.", within=_FROM_ZERO)
    onzeta_temperature: float = option(0.04, "Of the visual proxies' softmax.", within=_ABOVE_ZERO)
    onzeta_mix: float = option(0.8, "β: largest weight of the visual proxies.", within=_SHARE)
    # The paper takes the length of the stream, which no online method knows.
    onzeta_mix_items: int = option(
        2000, "Offered items after which they have it.", within=_FROM_ONE
    )


@dataclass(frozen=True)
class BCASettings(Settings):
    """BCA, arXiv 2503.09248; the values are those of a port, not confirmed by the authors' code."""

    bca_mean_least: float = option(
        0.05, "Probability above which an item moves its class.", within=_SHARE
    )
    bca_mean_items: float = option(
        20_000.0, "Items that a class's text counts for.", within=_ABOVE_ZERO
    )
    bca_prior_least: float = option(
        0.65, "Probability above which an item moves the prior.", within=_SHARE
    )
    bca_prior_items: float = option(
        1.0, "Items that the first prior counts for.", within=_FROM_ZERO
    )


@dataclass(frozen=True)
class DOTASettings(Settings):
    """DOTA, arXiv 2409.19375; its values are of each set, these are those of a port."""

    dota_variance: float = option(1e-4, "σ: of a class at the start.", within=_ABOVE_ZERO)
    dota_shrinkage: float = option(
        1e-3, "ε: share of the identity in the covariance.", within=Range(above=0, most=1)
    )
    dota_rate: float = option(
        0.02, "ρ: weight of the Gaussians an item a class.", within=_FROM_ZERO
    )
    dota_weight: float = option(0.1, "η: their largest weight.", within=_FROM_ZERO)
    dota_every: int = option(
        128, "Offered items between two covariances; 1: as published.", within=_FROM_ONE
    )
    dota_memory: int = option(
        512, "MB that covariances of classes may take; else one of all.", within=_FROM_ZERO
    )

    def pools(self, classes: int, dim: int) -> bool:
        """Whether covariances of C classes of D dims would take more memory than they may."""
        return 4 * classes * dim**2 > self.dota_memory * 2**20

    def note(self, classes: int, dim: int) -> str:
        """What differs from the paper on C classes of D dims, if anything does."""
        if not self.pools(classes, dim):
            return ""
        return (
            f"has one covariance of all classes, not the paper's one of each: those of "
            f"{classes:,} classes of {dim:,} dims take more than {self.dota_memory:,} MB "
            f"(dota-memory)"
        )
