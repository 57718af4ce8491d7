"""Ridge while a stream runs, in pieces of any size."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import NO_EVIDENCE, Decisions, Evidence, StreamData
from zsntta_cli.methods.detectors.ridge.detector import RidgeDetector, class_logits, decided
from zsntta_cli.methods.detectors.ridge.items import Floats, RidgeItems, check_classes
from zsntta_cli.methods.detectors.ridge.order import LastClasses
from zsntta_cli.methods.detectors.ridge.rule import Answer, Rule
from zsntta_cli.methods.detectors.ridge.words import WORD_COLUMNS, word_columns
from zsntta_cli.methods.scores import TOP
from zsntta_cli.methods.settings import RidgeSettings
from zsntta_cli.methods.state import State, checked, nested, within
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


def run(data: StreamData, options: RidgeSettings, threshold: ThresholdSettings) -> Decisions:
    """Decide on every item of the stream as if it ran online."""
    return stepper(data, options, threshold).push(data)


def stepper(
    data: StreamData, options: RidgeSettings, threshold: ThresholdSettings
) -> "RidgeStepper":
    """Make a stepper of ridge before the first item."""
    pool, words = data.pool, WORD_COLUMNS * (data.pool.more_text is not None)
    detector = RidgeDetector(pool.text_features, pool.logit_scale, options, words)
    return RidgeStepper(detector, threshold, (*pool.text_features.shape, words))


@dataclass(frozen=True)
class RidgeJudge:
    """The rule, the last classes and ZS-CLIP's threshold, which serves without a rule."""

    rule: Rule | None
    last: LastClasses
    zero_shot: float
    cautious: bool

    def __call__(self, data: StreamData) -> Decisions:
        """Decide on items, which do not enter the queue."""
        zero_shot = np.full(len(data), self.zero_shot)
        items = items_of(data, slice(None), zero_shot)
        logits, enters = class_logits(items, self.rule), np.zeros(len(items), bool)
        named, _ = self.last.name(logits, items.top_classes, enters)
        answer = replace(decided(items, self.rule), class_index=named)
        return decisions_of(answer, zero_shot, self.cautious)


class RidgeStepper:
    """The detector while a stream runs.

    Injected noise is not learned; the other items are decided as if it were not in the stream.
    """

    def __init__(
        self, detector: RidgeDetector, threshold: ThresholdSettings, shape: tuple[int, ...]
    ) -> None:
        """`shape`: classes C, dims D, and the number of word values of an item."""
        self._detector, self._zero_shot = detector, OnlineThreshold(threshold)
        self._classes, self._dim, self._words = shape
        self._waiting: list[tuple[RidgeItems, NDArray[np.bool_]]] = []  # with the decisions
        self._count = 0  # items that wait

    @property
    def warm_up(self) -> int:
        """The number of items of the first block."""
        return self._detector.block_after(0)

    @property
    def adapted(self) -> bool:
        """Whether there is a rule."""
        return self._detector.rule is not None

    @property
    def evidence(self) -> Evidence:
        """The evidence of the stream for noise of another kind."""
        rule = self._detector.rule
        return rule.trust.evidence if rule else NO_EVIDENCE

    def push(self, data: StreamData) -> Decisions:
        """Decide on the next items, and learn at the end of each block."""
        is_test = ~data.injected
        # An injected item gets the zero-shot threshold of the test item before it.
        before = self._zero_shot.latest
        thresholds = np.append(before, self._zero_shot(data.noise_score[is_test]))
        zero_shot = thresholds[np.cumsum(is_test)]
        parts: list[Decisions] = []
        tests, start, done = np.flatnonzero(is_test), 0, 0
        while start < len(data) or not parts:
            done += self._detector.block - self._count
            stop = int(tests[done - 1]) + 1 if done <= len(tests) else len(data)
            part = slice(start, stop)
            parts.append(self._push_part(data, part, zero_shot[part]))
            start = stop
        return Decisions.joined(parts)

    def _push_part(self, data: StreamData, part: slice, zero_shot: Floats) -> Decisions:
        """Decide on the items of a block, or of the rest of it."""
        items, is_test = items_of(data, part, zero_shot), ~data.injected[part]
        answer = self._detector.decide(items, is_test)
        self._learn(items if is_test.all() else items.part(is_test), answer.is_noise[is_test])
        decisions = decisions_of(answer, zero_shot, self._detector.cautious)
        assert decisions.is_noise is not None
        return replace(decisions, is_noise=decisions.is_noise | ~is_test)

    def _learn(self, items: RidgeItems, is_noise: NDArray[np.bool_]) -> None:
        """Add items to the block, and learn the block when it is complete."""
        self._waiting.append((items, is_noise))
        self._count += len(items)
        if self._count == self._detector.block:
            self._detector.learn(*self._block())
            self._waiting, self._count = [], 0

    def _block(self) -> tuple[RidgeItems, NDArray[np.bool_]]:
        if not self._waiting:
            top = min(TOP, self._classes)
            return RidgeItems.none(0, self._dim, top, self._words), np.zeros(0, bool)
        items, is_noise = zip(*self._waiting, strict=True)
        return RidgeItems.joined(items), np.concatenate(is_noise)

    def judge(self) -> RidgeJudge:
        """The rule at this moment."""
        detector, zero_shot = self._detector, self._zero_shot.latest
        return RidgeJudge(
            detector.rule, detector.last_classes.copied(), zero_shot, detector.cautious
        )

    def state(self) -> State:
        """The detector, ZS-CLIP's queue and the block."""
        items, is_noise = self._block()
        return nested(
            detector=self._detector.state(),
            zero_shot=self._zero_shot.state(),
            waiting={**items.state(), "is_noise": is_noise},
        )

    def restore(self, state: State) -> None:
        """Continue from a state; raise ValueError if it is not one of ridge's."""
        new = checked(state, self.state())
        waiting = within(new, "waiting")
        is_noise = np.asarray(waiting.pop("is_noise"))
        items = RidgeItems.restored(waiting)
        check_classes(items.top_classes, self._classes)
        detector = within(new, "detector")
        for name in ("ring.top_classes", "order.classes"):
            check_classes(np.asarray(detector[name]), self._classes)
        if len(items) >= self._detector.block_after(int(detector["ring.seen"])):
            raise ValueError(f"{len(items)} items wait")
        self._detector.restore(detector)
        self._zero_shot.restore(within(new, "zero_shot"))
        self._waiting, self._count = [(items, is_noise)], len(items)


def decisions_of(answer: Answer, zero_shot: Floats, cautious: bool) -> Decisions:
    """Turn an answer into decisions; `cautious`: without evidence nothing is called noise."""
    count, (value, kind) = len(answer.score), answer.evidence
    is_noise = answer.is_noise & (answer.evidence.is_sure or not cautious)
    return Decisions(
        answer.class_index, is_noise, 1 - answer.score, zero_shot,
        np.full(count, answer.threshold), np.full(count, value), np.full(count, kind, np.int8),
        answer.suspicion,
    )  # fmt: skip


def items_of(data: StreamData, part: slice, zero_shot_threshold: Floats) -> RidgeItems:
    """Consecutive items of the stream as the detector sees them."""
    raw, detail, u = data.features(part), data.detail(part), data.noise_score[part]
    norm = np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-12)
    doubt = np.column_stack([u, detail.entropy, -detail.top_logits[:, 0]])
    is_noise, words = u > zero_shot_threshold, word_columns(data, part)
    return RidgeItems(raw / norm, doubt, detail.top_logits, detail.top_classes, is_noise, words)
