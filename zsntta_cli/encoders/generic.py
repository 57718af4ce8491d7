"""An encoder's generic text, which classes stand out from: the mean feature of texts on anything.

Any 50 words in any prompt are as good as a thousand; of 20 words the mean still depends on them.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.words import built_in_words, limited_words
from zsntta_cli.encoders.text import Encode, prompt_features

_PROMPT, _WORDS = "a photo of a {}.", 256


@cache
def _words() -> list[str]:
    """Nouns of WordNet, drawn but always the same."""
    return limited_words(built_in_words("wordnet-nouns"), _WORDS)


def generic_source() -> str:
    """The words and their prompt, as feature files name them."""
    return f"{_PROMPT} {', '.join(_words())}"


def generic_text(encode: Encode) -> NDArray[np.float32]:
    """The mean (D,) of the unit features of words; its norm is below 1, and says how alike all are.

    It must not be made one of unit norm: with norm 1 a third of the clean images would seem to fit
    no class.
    """
    features = prompt_features(encode, _PROMPT, _words())
    return features.mean(0, dtype=np.float64).astype(np.float32)
