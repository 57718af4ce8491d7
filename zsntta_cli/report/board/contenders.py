"""The contenders on the board: every method, and a few variants with other settings."""

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
        """What the method needs besides images and class names."""
        method = METHODS[self.method]
        injects = method.defaults.get("noise", NO_NOISE) != NO_NOISE
        inputs = {method.needs: bool(method.needs), INJECTED: injects, WHOLE: method.offline}
        return tuple(name for name, is_wanted in inputs.items() if is_wanted)

    def given(self, noise: str) -> tuple[str, ...]:
        """Its inputs on a stream that has noise of this type injected, or none."""
        return tuple(name for name in self.inputs if name != INJECTED or noise != NO_NOISE)

    @property
    def delay(self) -> int:
        """The most items after which an item's answer is known."""
        method = METHODS[self.method]
        names = {field.name for field in dataclasses.fields(method.settings)}
        changed = {name: value for name, value in self.values.items() if name in names}
        return method.delay(method.settings(**changed))

    @property
    def decides(self) -> bool:
        """Whether the method has a decision rule, or only a score."""
        return METHODS[self.method].decides

    @property
    def unfit(self) -> str:
        """Why the method cannot be run from cached features; empty if it can."""
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
    """The contenders with these labels of rows, or all.

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
