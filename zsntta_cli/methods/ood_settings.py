"""The settings of zero-shot OOD scores: a dataclass each, as in settings.py."""

from dataclasses import dataclass

from zsntta_cli.settings.options import Range, Settings, option

_FROM_ONE, _SHARE = Range(least=1), Range(least=0, most=1)


@dataclass(frozen=True)
class ScoreSettings(Settings):
    """A zero-shot OOD score without settings of its own: max-logit, energy."""


@dataclass(frozen=True)
class McmSettings(Settings):
    """MCM, arXiv 2211.13445: the largest softmax value of cosines over a temperature."""

    # The ZS-NTTA paper's Table 5 quotes MCM's own figures: temperature 1. None: as in its Eq. 1.
    temperature: float | None = option(
        None, "Of the softmax over cosines; none: 1 / logit scale.", within=Range(least=1e-4)
    )


@dataclass(frozen=True)
class NegLabelSettings(Settings):
    """NegLabel, arXiv 2403.20078, with its paper's settings; `official` has its released code's."""

    words: str = option(
        "", "Word lists of `extract --words`: NAME or NAME,NAME; if one is cached, that."
    )
    word_prompts: str = option(
        "run", "The run's, or each list's by its part of speech.", choices=("run", "speech")
    )
    negatives: int = option(10_000, "M, words that are mined.", within=_FROM_ONE)
    mined_share: float | None = option(  # 0.15: 8,536 nouns and 1,963 adjectives
        None, "Share of each list that is mined, instead of M.", within=Range(above=0, most=1)
    )
    groups: int = option(100, "Of negatives, whose scores are averaged.", within=_FROM_ONE)
    grouping: str = option(
        "ranked", "By distance, or shuffled and of one size.", choices=("ranked", "random")
    )
    percentile: float = option(0.05, "η, of the distance to the ID names.", within=_SHARE)


@dataclass(frozen=True)
class ClipnSettings(Settings):
    """CLIPN, arXiv 2308.12213: needs the features of its own "no" text encoder."""

    no_text: str = option("", ".npy of 'no' text features (C, D), in the order of the classes.")
