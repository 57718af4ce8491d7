"""Ridge while a stream runs, in pieces of any size."""

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import NO_EVIDENCE, Decisions, Evidence, StreamData
from zsntta_cli.methods.detectors.ridge import Floats, Ridge, RidgeItems, Rule
from zsntta_cli.methods.detectors.ridge_order import Order
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
    return RidgeStepper(data, options, threshold)


@dataclass(frozen=True)
class RidgeJudge:
    """The rule, the last classes and ZS-CLIP's threshold, which serves without a rule."""

    rule: Rule | None
    order: Order
    zero_shot: float
    cautious: bool

    def __call__(self, data: StreamData) -> Decisions:
        """Decide on items, which do not enter the queue."""
        thresholds = np.full(len(data), self.zero_shot)
        items = items_of(data, slice(None), thresholds)
        learned = np.zeros(len(items), bool)
        order = copy.deepcopy(self.order)
        return decided(items, self.rule, order, learned, thresholds, self.cautious)[0]


class RidgeStepper:
    """The detector while a stream runs.

    Injected noise is not learned; the other items are decided as if it were not in the stream.
    """

    def __init__(
        self, data: StreamData, options: RidgeSettings, threshold: ThresholdSettings
    ) -> None:
        text, words = data.pool.text_features, 2 * (data.pool.more_text is not None)
        self._options, self._zero_shot = options, OnlineThreshold(threshold)
        self._ridge = Ridge(text, data.pool.logit_scale, options, words)
        self._order = Order(len(text), options.ridge_ring)
        none = RidgeItems.none(text.shape, words), np.zeros(0, bool)
        self._waiting = [none]  # items of the block, with the decisions
        self._count = 0

    @property
    def warm_up(self) -> int:
        """The number of items of the first block."""
        return self._options.ridge_first

    @property
    def adapted(self) -> bool:
        """Whether there is a rule."""
        return self._ridge.rule is not None

    @property
    def evidence(self) -> Evidence:
        """The evidence of the stream for noise of another kind."""
        return self._ridge.rule.evidence if self._ridge.rule else NO_EVIDENCE

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
            done += self._ridge.block - self._count
            stop = int(tests[done - 1]) + 1 if done <= len(tests) else len(data)
            part = slice(start, stop)
            parts.append(self._push_part(data, part, zero_shot[part]))
            start = stop
        return Decisions.joined(parts)

    def _push_part(self, data: StreamData, part: slice, zero_shot: Floats) -> Decisions:
        """Decide on the items of a block, or of the rest of it."""
        items, is_test = items_of(data, part, zero_shot), ~data.injected[part]
        cautious = self._options.cautious
        rule, order = self._ridge.rule, self._order
        answer, is_noise = decided(items, rule, order, is_test, zero_shot, cautious)
        if not is_test.all():
            assert answer.is_noise is not None
            items = items.part(is_test)
            answer = replace(answer, is_noise=answer.is_noise | ~is_test)
        self._waiting.append((items, is_noise[is_test]))
        self._count += len(items)
        if self._count == self._ridge.block:
            self._ridge.learn(*self._block())
            if self._options.ridge_order:
                self._order.learn()
            self._waiting, self._count = self._waiting[:1], 0
        return answer

    def _block(self) -> tuple[RidgeItems, NDArray[np.bool_]]:
        items, is_noise = zip(*self._waiting, strict=True)
        return RidgeItems.joined(items), np.concatenate(is_noise)

    def judge(self) -> RidgeJudge:
        """The rule at this moment."""
        zero_shot, cautious = self._zero_shot.latest, self._options.cautious
        return RidgeJudge(self._ridge.rule, copy.deepcopy(self._order), zero_shot, cautious)

    def state(self) -> State:
        """What was learned, ZS-CLIP's queue and the items of the block."""
        items, is_noise = self._block()
        words = {} if items.words.shape[1] else {"words"}  # without words there is no such column
        columns = {name: c for name, c in vars(items).items() if name not in words}
        return nested(
            ridge=self._ridge.state(), order=dict(vars(self._order)),
            zero_shot=self._zero_shot.state(), waiting={**columns, "is_noise": is_noise},
        )  # fmt: skip

    def restore(self, state: State) -> None:
        """Continue from a state; raise ValueError if it is not one of ridge's."""
        new = checked(state, self.state())
        waiting, ridge, order = (within(new, part) for part in ("waiting", "ridge", "order"))
        is_noise, none = np.asarray(waiting.pop("is_noise")), self._waiting[0]
        columns: Any = {"words": np.zeros((len(is_noise), 0)), **waiting}
        items = RidgeItems(**columns)
        for named in (items.top_classes, np.asarray(order["classes"])):
            if named.size and not 0 <= named.min() <= named.max() < len(self._ridge.text):
                raise ValueError(f"an item's class is none of {len(self._ridge.text)}")
        if len(items) >= self._ridge.block_after(int(ridge["seen"])):
            raise ValueError(f"{len(items)} items wait")
        self._ridge.restore(ridge)
        vars(self._order).update(order)
        self._zero_shot.restore(within(new, "zero_shot"))
        self._waiting, self._count = [none, (items, is_noise)], len(items)


def decided(
    items: RidgeItems, rule: Rule | None, order: Order, enters: NDArray[np.bool_],
    zero_shot: Floats, cautious: bool,
) -> tuple[Decisions, NDArray[np.bool_]]:  # fmt: skip
    """Decide on B items by a rule, or as ZS-CLIP does; the flags are those before caution.

    The classes of clean items that enter are remembered for the next items. `cautious`: without
    evidence nothing is called noise.
    """
    count, evidence = len(items), rule.evidence if rule else NO_EVIDENCE
    if rule:
        score, tau, logits = rule.scores(items), rule.threshold, rule.class_logits(items)
        is_noise = score > tau
    else:
        score, tau, is_noise = items.doubt[:, 0], np.nan, items.zero_shot_noise
        logits = items.top_logits.astype(np.float64)
    named = order.name(logits, items.top_classes, enters & ~is_noise)
    return Decisions(
        named, is_noise & (evidence.is_sure or not cautious), 1 - score, zero_shot,
        np.full(count, tau), np.full(count, evidence.value),
        np.full(count, evidence.kind, np.int8),
    ), is_noise  # fmt: skip


def items_of(data: StreamData, part: slice, zero_shot: Floats) -> RidgeItems:
    """Consecutive items of the stream as the detector sees them."""
    raw, detail, u = data.features(part), data.detail(part), data.noise_score[part]
    norm = np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-12)
    doubt = np.column_stack([u, detail.entropy, -detail.top_logits[:, 0]])
    scores, words = data.word_scores(part), np.zeros((len(u), 0))
    if scores is not None:
        words = np.column_stack([scores.ratio, scores.is_word])
    top = detail.top_logits, detail.top_classes
    return RidgeItems(raw / norm, doubt, *top, u > zero_shot, words)
