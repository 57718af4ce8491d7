"""What an exported file says of its features beside its arrays: JSON under the key `zsntta`.

Anybody can write such a file. What it says of the encoder is believed as that of a feature file is,
and no more: the arrays are checked as those of any import.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import DATASET, FeatureSet, Text, public_identity
from zsntta_cli.cache.soundness import faults_of_texts, faults_of_words, is_scale
from zsntta_cli.errors import StoreError, first_line, short

KEY = "zsntta"  # of the description in a file of arrays
TEXT_KEY = "text_features"
_FORMAT = 1
_LONGEST = 4096  # bytes of a name: no file has a longer path


@dataclass(frozen=True)
class TextEntry:
    """A prompt template, and the key of its class text features in the file."""

    key: str
    template: str
    logit_scale: float | None = None


@dataclass(frozen=True)
class Description:
    """What belongs to exported features and is no array."""

    encoder: dict[str, Any]  # identity
    normalized: bool
    texts: tuple[TextEntry, ...]
    format: int = _FORMAT

    def to_json(self) -> str:
        """The description as the text that is written."""
        return json.dumps(asdict(self), indent=1)

    def read_texts(
        self, content: Mapping[str, NDArray[Any] | None], shape: tuple[int, int], where: Path
    ) -> tuple[Text, ...]:
        """Read the class text features (C, D) of all templates.

        Raises:
            StoreError: text features are missing, of another shape or without unit norm.
        """
        return tuple(_text(entry, content.get(entry.key), shape, where) for entry in self.texts)


def describe(features: FeatureSet, texts: Sequence[Text]) -> Description:
    """Describe a feature file with some of its text features; the first have the usual key."""
    entries = tuple(
        TextEntry(f"{TEXT_KEY}_{i}" if i else TEXT_KEY, text.template, text.logit_scale)
        for i, text in enumerate(texts)
    )
    return Description(public_identity(features.identity), features.normalized, entries)


def read_description(content: Mapping[str, NDArray[Any] | None], where: Path) -> Description | None:
    """Read the description of an exported file; None if a file has none.

    Raises:
        StoreError: it is none, or says what no feature file can hold.
    """
    text = content.get(KEY)
    if text is None:
        return None
    try:
        description = _parse(str(text))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"cannot read {where} ({first_line(error)}): export it again.") from error
    faults = [*faults_of_words(DATASET, description.encoder, {})]
    faults += [f"{e.template!a} is no text" for e in description.texts if not _fits(e.template)]
    if faults:
        raise StoreError(f"{where} cannot be used: {'; '.join(faults)}.")
    return description


def _parse(text: str) -> Description:
    """Parse a description: ValueError if it is none, or one of a newer version."""
    values = json.loads(text)
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        raise ValueError(f"its '{KEY}' is of no format that is known here, must be {_FORMAT}")
    for key, kind in (("encoder", dict), ("normalized", bool), ("texts", list)):
        if not isinstance(values.get(key), kind):
            raise ValueError(f"'{key}' in its '{KEY}' is no {kind.__name__}")
    return Description(values["encoder"], values["normalized"], tuple(map(_entry, values["texts"])))


def _entry(values: Any) -> TextEntry:
    key, template, scale = (values.get(name) for name in ("key", "template", "logit_scale"))
    if not (isinstance(key, str) and isinstance(template, str)):
        raise ValueError(f"a template in its '{KEY}' lacks its name")
    if scale is not None and not is_scale(scale):
        raise ValueError(f"the logit scale of a template in its '{KEY}' is {scale}")
    return TextEntry(key, template, scale)


def _text(
    entry: TextEntry, array: NDArray[Any] | None, shape: tuple[int, int], where: Path
) -> Text:
    if array is None or array.dtype != np.float32 or array.shape != shape:
        raise StoreError(f"{where}: '{entry.key}' is missing or of another shape.")
    if faults := [*faults_of_texts(entry.template, array)]:
        raise StoreError(f"{where} cannot be used: {'; '.join(faults)}.")
    return Text(entry.template, np.ascontiguousarray(array), entry.logit_scale)


def stored_names(array: NDArray[Any] | None, where: Path) -> tuple[str, ...]:
    """Class names or sample ids as a feature file has them; none without an array.

    Raises:
        StoreError: no feature file can hold one of them.
    """
    names = () if array is None else tuple(map(str, array.ravel().tolist()))
    if bad := next((name for name in names if not _fits(name)), None):
        raise StoreError(
            f"{where} holds {short(ascii(bad))}, must be a name of up to {_LONGEST:,} bytes."
        )
    return names


def _fits(text: str) -> bool:
    """Whether a feature file can hold a text: JSON can have half of a surrogate pair."""
    try:
        return len(text.encode(errors="surrogateescape")) <= _LONGEST
    except UnicodeEncodeError:
        return False
