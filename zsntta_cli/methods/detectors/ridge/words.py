"""Words for what else an image may show: with a word list, a fourth score of the single image.

t is the log of the words' softmax mass over the classes' (methods/scores.py). It is large for noise
that a word of the list names. If few images match a word best, t is only random and does not count.
"""

from dataclasses import dataclass

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors.ridge.items import Floats

_WEIGHT = 2.0  # weight of t beside the mixed score of variance 1
_USED = 0.02, 0.06  # shares of the ring that match a word best: t starts to count, counts in full

WORD_COLUMNS = 2  # t, and whether a word is the best match


def word_columns(data: StreamData, part: slice) -> Floats:
    """The word values of consecutive items, (B, 2), or (B, 0) without words."""
    scores = data.word_scores(part)
    if scores is None:
        return np.zeros((len(data.index[part]), 0))
    return np.column_stack([scores.ratio, scores.is_word])


@dataclass(frozen=True)
class WordWeight:
    """The weight of t in the score: t is standardised over the ring, and counts if words match."""

    mean: float = 0.0
    weight: float = 0.0  # divided by the deviation of t

    @classmethod
    def over(cls, ring: Floats) -> "WordWeight":
        """The weight of t beside a score of variance 1, from the ring's words (M, 2)."""
        if not ring.shape[1]:
            return cls()
        t, (start, full) = ring[:, 0], _USED
        used = min(max((ring[:, 1].mean() - start) / (full - start), 0.0), 1.0)
        return cls(float(t.mean()), float(_WEIGHT * used / max(t.std(), 1e-9)))

    def __call__(self, words: Floats) -> Floats | float:
        """The term that t adds to the scores of items with words (B, 2)."""
        return self.weight * (words[:, 0] - self.mean) if self.weight else 0.0

    def over_deviation(self, deviation: float) -> "WordWeight":
        """The weight in a score that is divided by its deviation."""
        return WordWeight(self.mean, self.weight / deviation)
