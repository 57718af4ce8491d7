"""The settings of methods that reject what negative words name better than the classes do."""

from dataclasses import dataclass

from zsntta_cli.settings.options import Range, Settings, option

_FROM_ONE, _SHARE = Range(least=1), Range(least=0, most=1)


@dataclass(frozen=True)
class NegLabelSettings(Settings):
    """NegLabel, arXiv 2403.20078, with its paper's settings; `official` has its released code's."""

    words: str = option(
        "", "Of `extract --words`: wordnet, NAME or NAME,NAME; if one is cached, that."
    )
    word_prompts: str = option(
        "run", "Of one's own lists: the run's, or by part of speech.", choices=("run", "speech")
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
