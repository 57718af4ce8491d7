"""What a method gets, the items of a stream, and what it returns, its decisions on them."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods.scores import (
    Columns,
    Features,
    Floats,
    Mask,
    ZeroShot,
    blocks,
    cosine_logits,
    zero_shot,
)

_ALL = slice(None)
Rows = slice | NDArray[np.integer]


@dataclass(frozen=True, eq=False, kw_only=True)
class MoreText:
    """The texts that a method reads besides the class names."""

    more_text: Features | None = None  # (W, D)
    more_sizes: tuple[int, ...] = ()  # rows of each word list in `more_text`, if there are several
    more_names: Features | None = None  # (C, D) class names in the words' prompt
    generic: Features | None = None  # (D,) the encoder's generic text, norm below 1
    # Whether the encoder's level is known, below which an image is noise by itself.
    is_level_known: bool = False

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the features."""
        digest = hashlib.sha256()
        for features in (self.more_text, self.more_names, self.generic):
            if features is not None:
                digest.update(features.data)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class StreamData(MoreText):
    """T items in their order, as a method sees them: no label, no set, no truth on noise."""

    image_features: NDArray[np.floating]  # (T, D) raw output of the encoder
    text_features: Features  # (C, D) unit norm
    logit_scale: float
    zero_shot: ZeroShot  # frozen CLIP's classes, noise scores and largest logits
    injected: Mask  # (T,) noise that the method itself injected
    seed: int = 0  # for the random choices of a method
    own_score: Floats | None = None  # (T,) noise scores in place of 1 - MCM

    @classmethod
    def scored(
        cls, image_features: NDArray[np.floating], text_features: Features, logit_scale: float,
        injected: Mask | None = None, **more: Any,
    ) -> "StreamData":  # fmt: skip
        """A stream whose items are scored now; by default none of them is injected."""
        scores = zero_shot(image_features, text_features, logit_scale)
        injected = np.zeros(len(image_features), bool) if injected is None else injected
        return cls(image_features, text_features, logit_scale, scores, injected, **more)

    def __len__(self) -> int:
        return len(self.image_features)

    @property
    def class_index(self) -> NDArray[np.int32]:
        """The zero-shot classes (T,)."""
        return self.zero_shot.class_index

    @property
    def noise_score(self) -> Floats:
        """The zero-shot noise scores u (T,): the stream's own, or 1 - MCM if it has none."""
        return self.zero_shot.noise_score if self.own_score is None else self.own_score

    def beside(self, more: MoreText) -> "StreamData":
        """The same items for a method that reads more texts than the class names."""
        return replace(self, **{field.name: getattr(more, field.name) for field in fields(more)})

    def part(self, items: Rows) -> "StreamData":
        """Some of the items as a stream of their own."""
        return replace(
            self, image_features=self.image_features[items], injected=self.injected[items],
            zero_shot=self.zero_shot.part(items),
            own_score=None if self.own_score is None else self.own_score[items],
        )  # fmt: skip

    def features(self, items: Rows = _ALL) -> Features:
        """The raw image features (B, D) of some items, all by default."""
        return self.image_features[items].astype(np.float32, copy=False)

    def logits(self, items: Rows = _ALL) -> Features:
        """The zero-shot logits (B, C) of some items."""
        return cosine_logits(self.features(items), self.text_features, self.logit_scale)

    def score(
        self,
        by: Callable[[Features], Features],
        text: Features | None = None,
        temperature: float | None = None,
    ) -> Floats:
        """The scores (T,) of the items' logits (B, W) on W texts, a block of items at a time.

        By default the texts are the class names, and the temperature of the cosines is the model's,
        1 / logit scale.
        """
        text = self.text_features if text is None else text
        scale = self.logit_scale if temperature is None else 1 / temperature
        parts = (self.features(block) for block in blocks(len(self)))
        return np.concatenate([by(cosine_logits(x, text, scale)) for x in parts]).astype(float)


@dataclass(frozen=True, eq=False)
class Decisions(Columns):
    """A method's decisions on all T items, including injected noise."""

    class_index: NDArray[np.int32]  # (T,) the class, if the item is clean
    is_noise: Mask | None  # (T,); None: there is no decision rule
    id_score: Floats  # (T,) higher = more ID
    zero_shot_threshold: Floats | None = None  # (T,) on u, if there is one
    detector_threshold: Floats | None = None  # (T,) on v, nan in stage 1
    # (T,) by how many nats "one of the classes" is likelier than "any text", and the level below
    # which an image is noise by itself; nan where nothing is known; None: the method has no such.
    evidence: Floats | None = None
    level: Floats | None = None


def check_decisions(decisions: Any, name: str, items: int, classes: int) -> Decisions:
    """Check what a method returned for T items of C classes.

    Raises:
        SettingsError: a field has another type or length, or a value that no decision has; the
            message names the method, the field and the first such item.
    """
    if not isinstance(decisions, Decisions):
        raise SettingsError(f"{name} returns {type(decisions).__name__}, must return Decisions.")
    kinds = {"class_index": ("iu", "integers"), "is_noise": ("b", "booleans")}
    for field, values in vars(decisions).items():
        kind, words = kinds.get(field, ("f", "floats"))
        if values is None and field not in ("class_index", "id_score"):
            continue
        if not isinstance(values, np.ndarray) or values.dtype.kind not in kind:
            dtype = getattr(values, "dtype", type(values).__name__)
            fault = f"of {dtype}, must be an array of {words}"
        elif values.shape != (items,):
            fault = f"of shape {values.shape}, must be {(items,)}, one for each item"
        elif field == "class_index" and (wrong := (values < 0) | (values >= classes)).any():
            fault = f"{values[wrong][0]} at item {int(wrong.argmax()):,}, must be in [0, {classes})"
        elif field == "id_score" and (wrong := ~np.isfinite(values)).any():
            fault = f"{values[wrong][0]} at item {int(wrong.argmax()):,}, must be finite"
        else:
            continue
        raise SettingsError(f"{name} returns {field} {fault}.")
    return decisions
