"""Words for what else there may be: a fourth score of the single image, for who has a list of them.

t is the log of the words' softmax mass over the classes' (methods/scores.py). Noise that a word of
the list names has a large one; where hardly an image matches a word best, t is noise itself, and
does not count.
"""

from dataclasses import dataclass

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors.ridge.items import Floats

_WEIGHT = 2.0  # of t beside the mixed score of variance 1
_USED = 0.02, 0.06  # share of the ring whose best match is a word: t counts from, and in full

WORD_COLUMNS = 2  # t, and whether a word is the best match


def word_columns(data: StreamData, part: slice) -> Floats:
    """What the words say of a run of items, (B, 2); (B, 0) without words."""
    scores = data.word_scores(part)
    if scores is None:
        return np.zeros((len(data.index[part]), 0))
    return np.column_stack([scores.ratio, scores.is_word])


@dataclass(frozen=True)
class WordWeight:
    """How t enters the score: standardised over the ring, as far as words are used."""

    mean: float = 0.0
    weight: float = 0.0  # over the deviation of t

    @classmethod
    def over(cls, ring: Floats) -> "WordWeight":
        """The weight of t in the ring's words (M, 2), beside a score of variance 1."""
        if not ring.shape[1]:
            return cls()
        t, (start, full) = ring[:, 0], _USED
        used = min(max((ring[:, 1].mean() - start) / (full - start), 0.0), 1.0)
        return cls(float(t.mean()), float(_WEIGHT * used / max(t.std(), 1e-9)))

    def __call__(self, words: Floats) -> Floats | float:
        """What t adds to the scores of items with words (B, 2)."""
        return self.weight * (words[:, 0] - self.mean) if self.weight else 0.0

    def over_deviation(self, deviation: float) -> "WordWeight":
        """The weight in a score that is divided by its deviation."""
        return WordWeight(self.mean, self.weight / deviation)
