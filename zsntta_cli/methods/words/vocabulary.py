"""The words beside the class names: which are mined, and which of them images activate.

Negative words are words far from the names: "Negative Label Guided OOD Detection with Pretrained
Vision-Language Models", arXiv 2403.20078; "Conjugated Semantic Pool Improves OOD Detection …",
arXiv 2410.08611, puts synonyms of names last. An image's activation of a word is the word's part of
the softmax over names and words: TANL and DDE count on words that noise activates more than ID.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.method import WORD_LIST, MethodSettings
from zsntta_cli.methods.scores import Features, Floats, blocks, cosine_logits
from zsntta_cli.settings.options import choice, count, option, part, share

_NUMBERS = 2**21  # logits at a time: 8 MB
_LARGEST_ITEMS = 512
GAP = share(
    0.5,
    "g: an image is learned only if its noise score is beyond this share of the way from the "
    "threshold to 0 (as ID), or to 1 (as noise).",
)


class WordSettings(MethodSettings):
    """The choice of the words of a list that are negatives."""

    words: str = option("", WORD_LIST)
    word_prompts: str = choice(
        "Prompts of your own word lists: the run's, or by part of speech.", "run", "speech"
    )
    negatives: int = count(
        10_000, "M: number of words that are mined: the farthest from the class names."
    )
    # 0.15: 8,536 nouns and 1,963 adjectives
    mined_share: float | None = part(None, "Share of each list that is mined, instead of M.")
    percentile: float = share(
        0.05, "η: a word's distance is this percentile of its distances to all ID names."
    )
    too_near: float | None = share(None, "Cosine to an ID name above which a word is mined last.")


def names_and_words(data: StreamData) -> tuple[Features, Features]:
    """The class names (C, D), in the words' prompt if it differs, and all words (W, D)."""
    assert data.more_text is not None
    return data.text_features if data.more_names is None else data.more_names, data.more_text


def mined_words(data: StreamData, options: WordSettings) -> tuple[Features, Features]:
    """The class names (C, D) and the negatives: M of all words, or a share of each list."""
    names, words = names_and_words(data)
    if options.mined_share is None:
        return names, farthest(words, names, options)[: options.negatives]
    parts = []
    for of_list in np.split(words, np.cumsum(data.more_sizes or (len(words),))[:-1]):
        most = int(options.mined_share * len(of_list) + 1e-9)  # rounded down, but not 0.29 * 100
        parts.append(farthest(of_list, names, options)[: max(1, most)])
    return names, np.concatenate(parts)


def farthest(words: Features, names: Features, options: WordSettings) -> Features:
    """NegMining: the words (W, D), those farthest from the ID names (C, D) first.

    A word's distance is the η-percentile of its negative cosines to all names, which is nearly the
    distance to the nearest, without outliers. Words with a cosine above `too_near` come last.
    """
    distance = np.empty(len(words))
    for block in blocks(len(words)):
        negative = -words[block] @ names.T
        distance[block] = np.quantile(negative, options.percentile, axis=1)
        if options.too_near is not None:  # below every other, in order
            distance[block] -= 4 * (negative.min(axis=1) < -options.too_near)
    return words[np.argsort(-distance, kind="stable")]


def logit_blocks(
    features: Features, text: Features, scale: float
) -> Iterator[tuple[slice, Features]]:
    """Blocks of items (N, D) with their logits (B, W) on W texts, as many as fit in memory."""
    for block in blocks(len(features), max(1, min(_LARGEST_ITEMS, _NUMBERS // len(text)))):
        yield block, cosine_logits(features[block], text, scale)


def activations(logits: Features, classes: int, copies: int = 1) -> Features:
    """The activations (B, M) by logits (B, C + M), with `copies` of each word."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    names, words = powers[:, :classes], powers[:, classes:]
    return np.asarray(words / (names.sum(axis=1) + copies * words.sum(axis=1))[:, None])


class Recent:
    """The activations (M,) by the last L images of one kind, and their mean, zero at first."""

    def __init__(self, most: int, words: int) -> None:
        self.rows = np.zeros((most, words), np.float32)
        self.sum, self.seen = np.zeros(words), 0

    def add(self, activated: Features) -> None:
        """Add the activations (B, M) by some images, each in the place of the oldest."""
        for activation in activated:
            place = self.seen % len(self.rows)
            self.sum -= self.rows[place]  # zeros, while there is room
            self.sum += activation
            self.rows[place] = activation
            self.seen += 1

    @property
    def mean(self) -> Floats:
        """The mean activation (M,)."""
        return self.sum / max(1, min(self.seen, len(self.rows)))


def largest(values: Floats, count: int) -> NDArray[np.intp]:
    """The places of the `count` largest values (M,), descending."""
    places = np.argpartition(-values, count - 1)[:count]
    return places[np.argsort(-values[places], kind="stable")]


def surely_id_or_noise(u: Any, threshold: Any, gap: float) -> tuple[Any, Any]:
    """Whether noise scores u are so low that they are learned as ID, or so high that as noise.

    u < θ - g θ, and u > θ + g (1 - θ): the gap rule of AdaNeg's and TANL's released code.
    """
    return u < threshold - gap * threshold, u > threshold + gap * (1 - threshold)
