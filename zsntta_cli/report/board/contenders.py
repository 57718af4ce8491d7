"""Who stands on the board: every method, and a few variants by their settings."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zsntta_cli.errors import UnknownName
from zsntta_cli.methods import METHODS, WORDS
from zsntta_cli.settings import NO_NOISE

INJECTED, WHOLE = "injected noise", "the whole stream"


@dataclass(frozen=True)
class Contender:
    """A method with its settings: one row of the board."""

    label: str
    method: str
    preset: str = "paper"
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it wants besides images and class names."""
        method = METHODS[self.method]
        injects = method.defaults.get("noise", NO_NOISE) != NO_NOISE
        inputs = {method.needs: bool(method.needs), INJECTED: injects, WHOLE: method.offline}
        return tuple(name for name, is_wanted in inputs.items() if is_wanted)

    def given(self, noise: str) -> tuple[str, ...]:
        """Its inputs on a stream that has noise of this type injected, or none."""
        return tuple(name for name in self.inputs if name != INJECTED or noise != NO_NOISE)

    @property
    def delay(self) -> int:
        """How many items later at most its answer is known."""
        method = METHODS[self.method]
        own = {field.name for field in dataclasses.fields(method.settings)}
        changed = {name: value for name, value in self.values.items() if name in own}
        return method.delay(method.settings(**changed))

    @property
    def decides(self) -> bool:
        """Whether it has a decision rule, or a score alone."""
        return METHODS[self.method].decides

    @property
    def unfit(self) -> str:
        """Why it cannot be run from cached features, whatever these are."""
        method = METHODS[self.method]
        if method.live:
            return "encodes its images live"
        return "" if method.needs in ("", WORDS) else f"needs {method.needs}"


VARIANTS = (
    Contender("adand, tuned", "adand", "tuned"),
    Contender("adand, official", "adand", "official"),
    Contender("neglabel, threshold 0.5", "neglabel", values={"fixed": 0.5}),
)


def contenders(names: Sequence[str] = ()) -> tuple[Contender, ...]:
    """Those that are named, by the labels of their rows, or all.

    Raises:
        UnknownName: there is no such row.
    """
    by_label = {name: Contender(name, name) for name in METHODS}
    by_label |= {variant.label: variant for variant in VARIANTS}
    return tuple(_contender(label, by_label) for label in dict.fromkeys(names or by_label))


def _contender(label: str, by_label: Mapping[str, Contender]) -> Contender:
    if label in by_label:
        return by_label[label]
    try:
        METHODS[label]  # a detector with a classifier behind it is made when it is asked for
    except KeyError:
        raise UnknownName("method", label, tuple(by_label)) from None
    return Contender(label, label)
