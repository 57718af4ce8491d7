"""The texts that an image is compared with: the class names and groups of negative words.

Negative words are words far from the names: "Negative Label Guided OOD Detection with Pretrained
Vision-Language Models", arXiv 2403.20078; "Conjugated Semantic Pool Improves OOD Detection …",
arXiv 2410.08611, puts synonyms of names last.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Pool
from zsntta_cli.methods.classifiers.adapting import blocks
from zsntta_cli.methods.method import FROM_ONE, SHARE, WORD_LIST, MethodSettings
from zsntta_cli.methods.scores import energy
from zsntta_cli.settings.options import Range, option

if TYPE_CHECKING:
    from zsntta_cli.methods.words.neglabel import NegLabelSettings


@dataclass(frozen=True)
class WordSettings(MethodSettings):
    """The choice of the words of a list that are negatives."""

    words: str = option("", WORD_LIST)
    word_prompts: str = option(
        "run",
        "Prompts of your own word lists: the run's, or by part of speech.",
        choices=("run", "speech"),
    )
    negatives: int = option(10_000, "M: number of words that are mined.", within=FROM_ONE)
    mined_share: float | None = option(  # 0.15: 8,536 nouns and 1,963 adjectives
        None, "Share of each list that is mined, instead of M.", within=Range(above=0, most=1)
    )
    percentile: float = option(0.05, "η: percentile of the distance to the ID names.", within=SHARE)
    too_near: float | None = option(
        None, "Cosine to an ID name above which a word is mined last.", within=SHARE
    )


_CHUNK = 1024  # words at a time: it limits memory if there are many
_NUMBERS = 2**21  # logits at a time: 8 MB
_LARGEST_ITEMS = 512
_SURE = 80.0  # largest log odds: single precision can hold the exponential
Array = NDArray[np.float32]


def names_and_words(pool: Pool) -> tuple[Array, Array]:
    """The class names (C, D), in the words' prompt if it differs, and all words (W, D)."""
    assert pool.more_text is not None
    return pool.text_features if pool.more_names is None else pool.more_names, pool.more_text


def item_blocks(items: int, texts: int) -> Iterator[slice]:
    """Cut items into blocks whose logits on `texts` texts fit in memory."""
    size = max(1, min(_LARGEST_ITEMS, _NUMBERS // texts))
    return blocks(items, size)


def mine_negatives(
    words: Array, names: Array, count: int, percentile: float, too_near: float | None = None
) -> NDArray[np.intp]:
    """NegMining: the rows of the `count` words (W, D) farthest from the ID names (C, D).

    A word's distance is the η-percentile of its negative cosines to all names, which is nearly the
    distance to the nearest, without outliers. Words with a cosine above `too_near` come last.
    """
    distance = np.empty(len(words))
    for start in range(0, len(words), _CHUNK):
        part = slice(start, start + _CHUNK)
        negative = -words[part] @ names.T
        distance[part] = np.quantile(negative, percentile, axis=1)
        if too_near is not None:
            distance[part] -= 4 * (negative.min(axis=1) < -too_near)  # below every other, in order
    return np.argsort(-distance, kind="stable")[:count]


def mined_words(pool: Pool, options: WordSettings) -> Array:
    """The negative words (M, D), the farthest first: M of all lists, or a share of each list."""
    o, (names, words) = options, names_and_words(pool)
    if o.mined_share is None:
        return words[mine_negatives(words, names, o.negatives, o.percentile, o.too_near)]
    parts = []
    for of_list in np.split(words, np.cumsum(pool.more_sizes or (len(words),))[:-1]):
        count = max(1, int(o.mined_share * len(of_list) + 1e-9))  # rounded down, but not 0.29 * 100
        rows = mine_negatives(of_list, names, count, o.percentile, o.too_near)
        parts.append(of_list[rows])
    return np.concatenate(parts)


def groups(count: int, options: "NegLabelSettings") -> list[NDArray[np.intp]]:
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
    def of(cls, pool: Pool, options: "NegLabelSettings") -> "Vocabulary":
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
