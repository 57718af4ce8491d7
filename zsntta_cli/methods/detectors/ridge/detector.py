"""The detector, which decides by the last rule and learns the next one at the end of a block."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.detectors.ridge.items import Features, Floats, RidgeItems, Ring
from zsntta_cli.methods.detectors.ridge.order import LastClasses, Order
from zsntta_cli.methods.detectors.ridge.regression import Regression
from zsntta_cli.methods.detectors.ridge.rule import Answer, Rule, next_rule
from zsntta_cli.methods.settings import RidgeSettings
from zsntta_cli.methods.state import State, nested, within

_GROWTH = 8  # a block is an eighth of the items so far


class RidgeDetector:
    """The detector while a stream runs: `decide` on items in any pieces, `learn` block by block."""

    def __init__(
        self, text: Features, logit_scale: float, settings: RidgeSettings, words: int = 0
    ) -> None:
        """`text` (C, D): unit text features; `words`: the number of word values of an item."""
        classes, dim = self._shape = text.shape
        o = self._settings = settings
        self._regression = Regression(text, logit_scale, o.ridge_penalty)
        self._ring = Ring(o.ridge_ring, dim, words)
        self._prior = np.zeros(classes)  # softmax mass of items that were called clean
        self._order = Order(classes, o.ridge_ring)
        self.rule: Rule | None = None  # None: ZS-CLIP decides

    @property
    def cautious(self) -> bool:
        """Whether images are called noise only if there is evidence."""
        return self._settings.cautious

    @property
    def block(self) -> int:
        """The number of items before the next `learn`."""
        return self.block_after(self._ring.seen)

    def block_after(self, seen: int) -> int:
        """The number of items of a block after `seen` items were learned."""
        grown = min(seen // _GROWTH, self._settings.ridge_block)
        return max(grown, self._settings.ridge_first)

    @property
    def last_classes(self) -> LastClasses:
        """The classes of the last items, which influence the class of the next."""
        return self._order.last

    def decide(self, items: RidgeItems, is_test: NDArray[np.bool_] | None = None) -> Answer:
        """Decide on up to M consecutive items, by what was learned before.

        The classes of clean items that are `is_test` are remembered for the next items.
        """
        answer = decided(items, self.rule)
        is_kept = ~answer.is_noise if is_test is None else is_test & ~answer.is_noise
        logits = class_logits(items, self.rule)
        return replace(answer, class_index=self._order.name(logits, items.top_classes, is_kept))

    def learn(self, items: RidgeItems, is_noise: NDArray[np.bool_]) -> None:
        """Learn a block of items and the decisions on them."""
        if len(items) < 2:  # the end of a stream; one item has no deviation
            return
        self._regression.add(items.features, items.doubt)
        self._ring.add(items)
        mass = np.exp(items.top_logits + items.doubt[:, 2:]) * (1 - items.doubt[:, :1])
        np.add.at(self._prior, items.top_classes[~is_noise], mass[~is_noise])
        self.rule = next_rule(self._ring.items, self._regression, self._prior, self._settings)
        if self._settings.ridge_order:
            self._order.learn()

    def state(self) -> State:
        """Everything that was learned."""
        rule = Rule.none(*self._shape) if self.rule is None else self.rule
        return nested(
            regression=self._regression.state(),
            ring=self._ring.state(),
            prior={"mass": self._prior},
            order=self._order.state(),
            rule={"there": int(self.rule is not None), **rule.state()},
        )

    def restore(self, state: State) -> None:
        """Continue from a state that was checked against this one's."""
        rule = within(state, "rule")
        self._regression.restore(within(state, "regression"))
        self._ring.restore(within(state, "ring"))
        self._prior = np.asarray(state["prior.mass"])
        self._order.restore(within(state, "order"))
        self.rule = Rule.restored(rule) if rule.pop("there") else None


def class_logits(items: RidgeItems, rule: Rule | None) -> Floats:
    """The logits (B, K) by which a rule chooses classes; without a rule, the model's."""
    return items.top_logits.astype(np.float64) if rule is None else rule.class_logits(items)


def decided(items: RidgeItems, rule: Rule | None) -> Answer:
    """Decide on B items by a rule alone; without a rule, decide as ZS-CLIP does."""
    if rule is None:
        classes, u = items.top_classes[:, 0], items.doubt[:, 0]
        return Answer(classes, items.zero_shot_noise, u, np.nan, np.full(len(u), np.nan))
    return rule.answer(items)
