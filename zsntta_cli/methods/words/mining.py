"""Negative words: which of many are far from the class names, and in which groups they count.

"Negative Label Guided OOD Detection with Pretrained Vision-Language Models", arXiv 2403.20078;
"Conjugated Semantic Pool Improves OOD Detection …", arXiv 2410.08611, puts synonyms of names last.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.words.settings import NegLabelSettings, WordSettings

_CHUNK = 1024  # words at a time: bounds memory where there are many
Array = NDArray[np.float32]


def mine_negatives(
    words: Array, names: Array, count: int, percentile: float, too_near: float | None = None
) -> NDArray[np.intp]:
    """NegMining: rows of the `count` words (W, D) farthest from the ID names (C, D).

    A word's distance is the η-percentile of its negative cosines to all names: nearly that to the
    nearest one, but for outliers. Words of a cosine above `too_near` to any name come last.
    """
    distance = np.empty(len(words))
    for start in range(0, len(words), _CHUNK):
        part = slice(start, start + _CHUNK)
        negative = -words[part] @ names.T
        distance[part] = np.quantile(negative, percentile, axis=1)
        if too_near is not None:
            distance[part] -= 4 * (negative.min(axis=1) < -too_near)  # below every other, in order
    return np.argsort(-distance, kind="stable")[:count]


def mined(
    words: Array, sizes: Sequence[int], names: Array, options: WordSettings
) -> NDArray[np.intp]:
    """Rows of the words that are mined: M of all lists, or a share of each one, at least a word."""
    o = options
    if o.mined_share is None:
        return mine_negatives(words, names, o.negatives, o.percentile, o.too_near)
    starts = np.cumsum([0, *sizes])
    parts = []
    for start, size in zip(starts, sizes, strict=False):
        count = max(1, int(o.mined_share * size + 1e-9))  # rounded down, but not 0.29 * 100
        part = words[start : start + size]
        parts.append(start + mine_negatives(part, names, count, o.percentile, o.too_near))
    return np.concatenate(parts)


def groups(count: int, options: NegLabelSettings) -> list[NDArray[np.intp]]:
    """Columns of each group: neighbours by distance, or shuffled, where the remainder is left."""
    number = min(options.groups, count)
    if options.grouping == "ranked":
        return np.array_split(np.arange(count), number)
    shuffled = np.random.default_rng(0).permutation(count)  # one order for all seeds, as released
    return np.split(shuffled[: count // number * number], number)
