"""The settings of methods that reject images that negative words fit better than classes."""

from dataclasses import dataclass

from zsntta_cli.methods.settings import GAP, WORDS, AdaNDSettings
from zsntta_cli.settings.options import Range, Settings, option

_FROM_ONE, _FROM_ZERO, _SHARE = Range(least=1), Range(least=0), Range(least=0, most=1)


@dataclass(frozen=True)
class WordSettings(Settings):
    """The choice of the words of a list that are negatives."""

    words: str = option("", WORDS)
    word_prompts: str = option(
        "run",
        "Prompts of your own word lists: the run's, or by part of speech.",
        choices=("run", "speech"),
    )
    negatives: int = option(10_000, "M: number of words that are mined.", within=_FROM_ONE)
    mined_share: float | None = option(  # 0.15: 8,536 nouns and 1,963 adjectives
        None, "Share of each list that is mined, instead of M.", within=Range(above=0, most=1)
    )
    percentile: float = option(
        0.05, "η: percentile of the distance to the ID names.", within=_SHARE
    )
    too_near: float | None = option(
        None, "Cosine to an ID name above which a word is mined last.", within=_SHARE
    )


@dataclass(frozen=True)
class NegLabelSettings(WordSettings):
    """NegLabel, arXiv 2403.20078: the class names against words that are far from them.

    The settings are its paper's; `official` has its released code's.
    """

    groups: int = option(
        100, "Number of groups of negative words, whose scores are averaged.", within=_FROM_ONE
    )
    grouping: str = option(
        "ranked",
        "How words are grouped: by distance, or shuffled into groups of one size.",
        choices=("ranked", "random"),
    )
    # By the mean a group has the weight of C words, whatever its size.
    group_mass: str = option(
        "sum",
        "Softmax mass of a group of words: their sum, or C times their mean.",
        choices=("sum", "mean"),
    )


@dataclass(frozen=True)
class CspSettings(NegLabelSettings):
    """CSP, arXiv 2410.08611: NegLabel's score with its own words and phrases."""

    words: str = option("csp", WORDS)
    mined_share: float | None = option(
        0.15, "Share of each list that is mined, instead of M.", within=Range(above=0, most=1)
    )
    too_near: float | None = option(
        0.95, "Cosine to an ID name above which a word is mined last.", within=_SHARE
    )
    grouping: str = option(
        "random",
        "How words are grouped: by distance, or shuffled into groups of one size.",
        choices=("ranked", "random"),
    )


@dataclass(frozen=True)
class AdaNegSettings(NegLabelSettings):
    """AdaNeg, arXiv 2410.20149: NegLabel's score on proxies that the stream's images adapt.

    The score by texts tells which images are sure by an online threshold; `official` fixes it.
    """

    groups: int = option(
        5, "Number of groups of negative words, whose scores are averaged.", within=_FROM_ONE
    )
    grouping: str = option(
        "random",
        "How words are grouped: by distance, or shuffled into groups of one size.",
        choices=("ranked", "random"),
    )
    adaneg_shots: int = option(10, "L: images of each word in the memory.", within=_FROM_ONE)
    adaneg_text: float = option(0.1, "λ: weight of the score by texts.", within=_FROM_ZERO)
    adaneg_sure: float | None = option(  # the released code's is 0.5 on ImageNet
        None, "Fixed threshold on the score by texts; none: the adaptive one.", within=_SHARE
    )
    gap: float = option(0.5, GAP, within=_SHARE)


@dataclass(frozen=True)
class TanlSettings(WordSettings):
    """TANL, arXiv 2603.25250: the words that noise activates more than ID images do.

    The images of the stream so far choose them: the paper's α = 1.
    """

    tanl_candidates: str = option(
        "all", "Words that may be activated: all, or those mined.", choices=("all", "mined")
    )
    tanl_words: int = option(
        1000, "B: number of the most activated words that count.", within=_FROM_ONE
    )
    tanl_step: int = option(  # the released command goes through 2, 1 and 0
        2, "γ: additional words in each of the averaged scores; 0: one score.", within=_FROM_ZERO
    )
    tanl_ring: int = option(
        300,
        "L: number of the last images of either kind in the memory.",
        within=Range(least=1, most=4096),
    )
    gap: float = option(0.5, GAP, within=_SHARE)


@dataclass(frozen=True)
class DdeSettings(WordSettings):
    """DDE, arXiv 2606.25758: words that noise activates, and Gaussians of the classes.

    The settings are its paper's; `official` has its released code's. The paper chooses the number
    of words and the gate for each set. These are ImageNet's, but with 100 words for other sets.
    """

    batch_size: int = option(256, "Items that are decided on at once.", within=_FROM_ONE)
    dde_words: int = option(
        100, "M̂: number of the most activated words that count.", within=_FROM_ONE
    )
    dde_gate: float = option(0.5, "g: an item is surely ID only if the names' share of the "
    "softmax is above (1 + g) / 2.",
                             within=_SHARE)  # fmt: skip
    dde_exclusion: float = option(
        0.5, "β: weight of the Gaussians of second choices.", within=_FROM_ZERO
    )
    dde_doubled: bool = option(False, "Use each word twice, as the released code does.")
    dde_cells: str = option(
        "exact", "Possible thresholds: between any two scores, or at 0, 0.01 … 0.99.",
        choices=("exact", "grid"),
    )  # fmt: skip
    dde_cache: int = option(
        5_000,
        "Number of the last images of either kind in the cache.",
        within=Range(least=1, most=8192),
    )


@dataclass(frozen=True)
class NegLabelAdaNDSettings(AdaNDSettings, NegLabelSettings):
    """AdaND that learns from NegLabel's decisions (ours)."""

    gap: float = option(0.5, GAP, within=_SHARE)


@dataclass(frozen=True)
class CspAdaNDSettings(AdaNDSettings, CspSettings):
    """AdaND that learns from CSP's decisions (ours)."""

    gap: float = option(0.5, GAP, within=_SHARE)
