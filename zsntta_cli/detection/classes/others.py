"""Read words for what else images may show, and compute their text features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import difference
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import read_features
from zsntta_cli.datasets.names import words_name
from zsntta_cli.datasets.words import built_in_words, read_words
from zsntta_cli.errors import short
from zsntta_cli.methods.base import MoreText
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import WORD_SETS

if TYPE_CHECKING:
    from zsntta_cli.detection.encoding import Encoding

SETS = {"wordnet": "wordnet", "something": "cma"}  # built-in ones by what they are called here
_AT_ONCE = 1024  # words that are encoded and kept before the next
Array = NDArray[np.float32]
Texts = Callable[[Sequence[str], str], Array]  # unit text features (N, D) of names, by a prompt


@dataclass(frozen=True)
class WordList:
    """Words, and their prompt."""

    name: str  # of a built-in one, whose features may lie in a file
    words: Sequence[str]
    prompt: str


@dataclass(frozen=True)
class OtherWords:
    """Lists of words, and the prompt of the class names with which they are compared."""

    lists: Sequence[WordList]
    class_prompt: str

    @classmethod
    def read(cls, others: str | Path | Sequence[str], template: str) -> "OtherWords":
        """Read the lists of a name or a file, or take words; `template` is the classes' prompt.

        Raises:
            SettingsError: the text is neither a name nor a file. DatasetError: the file cannot be
                read.
        """
        if isinstance(others, str) and others in SETS:
            built_in = WORD_SETS[SETS[others]]
            lists = [WordList(n, built_in_words(n), p) for n, p in built_in.prompts.items()]
            return cls(lists, built_in.class_prompt or template)
        words = _read_file(Path(others)) if isinstance(others, str | Path) else list(others)
        check(
            all(isinstance(word, str) for word in words),
            "others must be words, as a list of texts.",
        )
        return cls([WordList("", words, template)], template)

    def features(self, names: Sequence[str], template: str, texts: Texts) -> MoreText:
        """The text features of all words, and of the class names under the words' prompt."""
        parts = [texts(one.words, one.prompt) for one in self.lists]
        beside = None if self.class_prompt == template else texts(names, self.class_prompt)
        return MoreText(np.concatenate(parts), more_names=beside)


def _read_file(path: Path) -> list[str]:
    wanted = f"{', '.join(SETS)}, or a file with one word per line"
    check(path.is_file(), f"others is '{short(str(path))}', must be {wanted}.")
    return read_words(path)


@dataclass(frozen=True)
class KeptTexts:
    """Text features of words: from `zsntta extract --words` if there, else encoded here."""

    encoding: "Encoding"
    identity: Mapping[str, Any]  # of the encoder whose image features are judged
    texts: Texts  # of what lies in no list's file

    def __call__(self, words: Sequence[str], prompt: str) -> Array:
        """Features (N, D) of words, in batches: finished batches are kept, however it ends."""
        kept = self._extracted(prompt)
        missing = [word for word in words if word not in kept]
        with self.encoding.reporter.track("words", len(missing), "words") as advance:
            for start in range(0, len(missing), _AT_ONCE):
                part = missing[start : start + _AT_ONCE]
                kept |= zip(part, self.texts(part, prompt), strict=True)
                advance(len(part))
        return np.stack([kept[word] for word in words])

    def _extracted(self, prompt: str) -> dict[str, Array]:
        """Features by words of the built-in list with this prompt, if a file has them."""
        names = (n for s in SETS.values() for n, p in WORD_SETS[s].prompts.items() if p == prompt)
        paths = [feature_path(self.encoding.root, self.encoding.name, words_name(n)) for n in names]
        sets = [read_features(path) for path in paths if path.exists()]
        return {
            word: row
            for one in sets
            if prompt in one.text_features and not difference(one.identity, self.identity)
            for word, row in zip(one.class_names, one.text_features[prompt], strict=True)
        }
