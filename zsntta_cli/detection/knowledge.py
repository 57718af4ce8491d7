"""The knowledge of a detector: the frozen model, and everything that was learned.

Nothing here takes a lock: `detector.py` lets one thread at a time change the knowledge. Readers
take the tuple `judge`, which is replaced as a whole and never changed.
"""

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection import inputs
from zsntta_cli.detection.learning import (
    LabelledImages,
    LearnedRule,
    Learner,
    learned,
    units,
    usual_of,
)
from zsntta_cli.detection.stepping import last_pass, passes_for
from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.method import Method


@dataclasses.dataclass(frozen=True)
class FrozenModel:
    """The zero-shot classifier, which never changes."""

    text: NDArray[np.float32]  # (C, D) unit norm
    scale: float  # of the logits
    bias: float | None  # of a sigmoid model's logits
    generic: NDArray[np.float32] | None = None  # (D,) of its texts on anything
    is_level_known: bool = False  # how far texts that fit stand above it

    @classmethod
    def checked(
        cls, text: Any, scale: Any, bias: Any, generic: Any = None, is_level_known: bool = False
    ) -> "FrozenModel":
        """A model from values that a user gave; SettingsError if they are invalid."""
        rows = inputs.checked_text(text)
        return cls(
            rows, inputs.checked_scale(scale), inputs.checked_bias(bias),
            inputs.checked_generic(generic, rows.shape[1]), bool(is_level_known),
        )  # fmt: skip

    def __deepcopy__(self, memo: object) -> "FrozenModel":
        return self

    def stream(self, features: NDArray[np.float32], seed: int = 0) -> StreamData:
        """Raw image features (N, D) as a stream with zero-shot scores."""
        known, count = self.is_level_known, len(features)
        pool = Pool.scored(features, self.text, self.scale, self.generic, is_level_known=known)
        return StreamData(pool, np.arange(count), np.zeros(count, bool), seed)


class Knowledge:
    """Everything that a detector has learned, at first nothing."""

    def __init__(self, model: FrozenModel, method: Method, class_names: Sequence[str]) -> None:
        self._model, self._class_names = model, class_names
        self.method, self.seen = method, 0
        self.learner = Learner(model.text.shape[1])
        self._settle()

    def _settle(self) -> None:
        """Let readers see the current knowledge."""
        self.judge = copy.deepcopy(self.method), self.learner.rule

    def push(self, data: StreamData) -> Verdicts:
        """Decide on the next images in order, and learn from them."""
        pieces = []
        for items in self.learner.pieces(len(data)):
            part = data.part(items)
            verdicts = Verdicts.of(part, self.method.push(part), self._class_names)
            pieces.append(_by_rule(self.learner.rule, verdicts, part))
            if self.learner.see(part.features(slice(None))):
                self._fit()
        self.seen += len(data)
        self._settle()
        return Verdicts.joined(pieces)

    def judged(self, data: StreamData) -> Verdicts:
        """Verdicts on images, each by itself; nothing is learned."""
        judge, rule = self.judge
        return _by_rule(
            rule, Verdicts.of(data, judge.push(data, learn=False), self._class_names), data
        )

    def snapshot(self) -> tuple[Method, LabelledImages]:
        """The method and the answers of this moment, for decisions in hindsight."""
        return copy.deepcopy(self.method), self.learner.answers

    def in_hindsight(
        self,
        data: StreamData,
        method: Method,
        answers: LabelledImages,
        passes: int | None,
        seed: int,
    ) -> Verdicts:
        """Verdicts on a whole folder with a snapshot, whose method learns."""
        decisions = last_pass(method, data, passes or passes_for(len(data)), seed)
        verdicts = Verdicts.of(data, decisions, self._class_names)
        if not len(answers):
            return verdicts
        margins = self._margins(method, answers.features)
        usual = usual_of(units(data.features(slice(None))), verdicts.margin, answers)
        return _by_rule(learned(answers, margins, usual), verdicts, data)

    def go_on_from(self, method: Method, data: StreamData, seed: int) -> None:
        """Continue from a method that saw a folder; the last images of a random order are kept."""
        order = np.random.Generator(np.random.PCG64(seed)).permutation(len(data))
        self.method, self.seen = method, self.seen + len(data)
        self.learner.see(data.features(slice(None))[order])
        if len(self.learner.answers):
            self._fit()
        self._settle()

    def teach(self, features: NDArray[np.float32], noise: NDArray[np.bool_]) -> None:
        """Learn a person's answers about images (N, D), given by their raw features."""
        self.learner.answers = self.learner.answers.and_of(features, noise)
        self._fit()
        self._settle()

    def _fit(self) -> None:
        """Fit the rule of the answers again, by the current knowledge."""
        self.learner.fit(lambda features: self._margins(self.method, features))

    def _margins(self, judge: Method, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """The margins (N,) that a judge gives raw features (N, D)."""
        data = self._model.stream(features)
        return Verdicts.of(data, judge.push(data, learn=False), self._class_names).margin


def _by_rule(rule: LearnedRule | None, verdicts: Verdicts, data: StreamData) -> Verdicts:
    """Verdicts by the rule learned from answers, if there are any.

    If a person labelled any image as noise, images above the threshold are noise, even those that
    are so by the other images alone.
    """
    if rule is None:
        return verdicts
    odds = rule.log_odds(units(data.features(slice(None))), verdicts.margin)
    unsure = (odds > 0) & ~verdicts.sure & (not rule.answers.noise.any())
    return dataclasses.replace(
        verdicts, score=odds, threshold=np.zeros_like(odds), noise=(odds > 0) & ~unsure,
        unsure=unsure,
    )  # fmt: skip
