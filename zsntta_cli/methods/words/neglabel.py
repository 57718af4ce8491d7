"""NegLabel, arXiv 2403.20078, and CSP, arXiv 2410.08611: class names against negative words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, Pool, StreamData
from zsntta_cli.methods.method import FROM_ONE, FROZEN, SHARE, WORD_LIST, WORDS, Method
from zsntta_cli.methods.ood_scores import image_scores
from zsntta_cli.methods.scores import energy
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.methods.words.vocabulary import Array, WordSettings, mined_words, names_and_words
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import Range, option

_SURE = 80.0  # largest log odds: single precision can hold the exponential


def grouped(default: str) -> Any:
    """The setting of how words are grouped."""
    return option(
        default, "How words are grouped: by distance, or shuffled into groups of one size.",
        choices=("ranked", "random"),
    )  # fmt: skip


def groups(count: int, options: "NegLabel.Settings") -> list[NDArray[np.intp]]:
    """The columns of each group: by distance, or shuffled groups of one size without the rest."""
    number = min(options.groups, count)
    if options.grouping == "ranked":
        return np.array_split(np.arange(count), number)
    shuffled = np.random.default_rng(0).permutation(count)  # one order for all seeds, as released
    return np.split(shuffled[: count // number * number], number)


@dataclass(frozen=True)
class Vocabulary:
    """Class names, then negatives group by group; words of no group are last."""

    text: Array  # (C + M, D) unit norm
    classes: int  # C
    bounds: tuple[int, ...]  # rows at which the G groups start, and the end of the last
    by_mean: bool  # a group has the weight of C words, whatever its size

    @classmethod
    def of(cls, pool: Pool, options: "NegLabel.Settings") -> "Vocabulary":
        """Make the vocabulary of a pool's names and mined words."""
        names, far = names_and_words(pool)[0], mined_words(pool, options)
        parts = groups(len(far), options)
        ungrouped = np.setdiff1d(np.arange(len(far)), np.concatenate(parts))
        bounds = len(names) + np.cumsum([0, *map(len, parts)])
        text = np.concatenate([names, far[np.concatenate([*parts, ungrouped])]])
        return cls(text, len(names), tuple(bounds.tolist()), options.group_mass == "mean")

    def id_share(self, logits: Array) -> Array:
        """The share (B,) of class names in the softmax beside a group, averaged over all groups.

        `logits` (B, C + M) are those of the texts, or of proxies in their place.
        """
        id_mass = energy(logits[:, : self.classes])
        shares = [
            1 / (1 + np.exp(np.minimum(self._mass(logits, i) - id_mass, _SURE)))
            for i in range(len(self.bounds) - 1)
        ]
        share: Array = np.mean(shares, axis=0)
        return share

    def _mass(self, logits: Array, group: int) -> Array:
        """The log of a group's mass (B,)."""
        start, stop = self.bounds[group : group + 2]
        mass = energy(logits[:, start:stop])
        return mass + np.float32(np.log(self.classes / (stop - start))) if self.by_mean else mass


class NegLabel(Method):
    """NegLabel, arXiv 2403.20078: the class names against words that are far from them."""

    @dataclass(frozen=True)
    class Settings(WordSettings):
        groups: int = option(
            100, "Number of groups of negative words, whose scores are averaged.", within=FROM_ONE
        )
        grouping: str = grouped("ranked")
        # By the mean a group has the weight of C words, whatever its size.
        group_mass: str = option(
            "sum",
            "Softmax mass of a group of words: their sum, or C times their mean.",
            choices=("sum", "mean"),
        )

    needs = WORDS
    cites = ("jiang2024negative",)
    cost = "keeps the last N_q scores; multiplies each item with M words too"
    revision = 2
    official = {"word_prompts": "speech", "mined_share": 0.15, "grouping": "random"}
    is_probability = True
    class_probability = FROZEN

    def __init__(self, data: StreamData, options: Settings, threshold: ThresholdSettings) -> None:
        self.vocabulary = Vocabulary.of(data.pool, options)
        self.threshold = OnlineThreshold(threshold)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise iff u = 1 - S is above its threshold; keep ZS-CLIP's class."""
        score = image_scores(items, self.vocabulary.id_share, self.vocabulary.text)
        own = self.threshold(1 - score, learn)
        return Decisions(items.class_index, 1 - score > own, score, detector_threshold=own)


class CSP(NegLabel):
    """CSP, arXiv 2410.08611: NegLabel's score with its own words and phrases."""

    @dataclass(frozen=True)
    class Settings(NegLabel.Settings):
        words: str = option("csp", WORD_LIST)
        mined_share: float | None = option(
            0.15, "Share of each list that is mined, instead of M.", within=Range(above=0, most=1)
        )
        too_near: float | None = option(
            0.95, "Cosine to an ID name above which a word is mined last.", within=SHARE
        )
        grouping: str = grouped("random")

    cites = ("chen2024conjugated",)
    cost = "keeps the last N_q scores; multiplies each item with the mined words too"
    revision = 1
