"""The declaration of a setting: its default, its help text and its range, in one place.

The command line's options, the checks of values and the reader of records use this declaration.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

from zsntta_cli.errors import SettingsError, short, unknown

_KINDS = {int: (Integral, "a whole number"), float: (Real, "a number"), str: (str, "text")}

# What lists all names of a kind, where a line cannot.
_LISTING = {
    "metric": "docs/results.md lists them",
    "setting": "zsntta methods show NAME lists a method's",
}
_LARGEST = 2**62  # the largest whole number
LARGEST_SCALE = 1e6  # of logits, which must be numbers in single precision; CLIP's scale is 100


@dataclass(frozen=True)
class Range:
    """The values that a number may take, with `least` and `most`, without `above` and `below`.

    Each side has at most one of its two bounds, and the lower side has one.
    """

    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    below: float = math.inf

    def __contains__(self, value: float) -> bool:
        if not (abs(value) <= _LARGEST if isinstance(value, Integral) else math.isfinite(value)):
            return False  # 10**400 is a whole number, too
        return bool(self.least <= value <= self.most and self.above < value < self.below)

    def __str__(self) -> str:
        opened, low = ("(", self.above) if math.isfinite(self.above) else ("[", self.least)
        closed, high = (")", self.below) if math.isfinite(self.below) else ("]", self.most)
        if math.isfinite(high):
            return f"in {opened}{low:,}, {high:,}{closed}"
        return f"{low:,} or more" if opened == "[" else f"above {low:,}"


def is_scale(value: Any) -> bool:
    """Whether a value can be an encoder's logit scale, exponentiated."""
    return is_bias(value) and value > 0


def is_bias(value: Any) -> bool:
    """Whether a value can be a sigmoid model's logit bias."""
    number = isinstance(value, float | int) and not isinstance(value, bool)
    return number and abs(value) <= LARGEST_SCALE


def option(
    default: Any,
    about: str,
    *,
    choices: tuple[str, ...] = (),
    within: Range | None = None,
    name: str = "",
    shown: str = "",
    checked_by: Callable[[Any], object] | None = None,
) -> Any:
    """Declare a field of a settings class.

    `name` is the name of its option and `shown` its default in a help text, if these differ from
    the field's. `checked_by` raises SettingsError for a wrong text; it is for texts with numbers in
    them, which `choices` only describe, and for numbers that may also be texts.
    """
    metadata = {
        "about": about, "choices": choices, "within": within, "name": name, "shown": shown,
        "checked_by": checked_by,
    }  # fmt: skip
    return field(default=default, metadata=metadata)


# Settings by their range: 1 or more, 0 or more, above 0, from 0 to 1, and above 0 to 1.
count, amount = partial(option, within=Range(least=1)), partial(option, within=Range(least=0))
positive = partial(option, within=Range(above=0))
share = partial(option, within=Range(least=0, most=1))
part = partial(option, within=Range(above=0, most=1))


def choice(about: str, *choices: str) -> Any:
    """Declare a field that is one of some texts, by default the first."""
    return option(choices[0], about, choices=choices)


def option_name(declared: "Field[Any]") -> str:
    """The name of a setting on the command line, without the dashes in front."""
    return declared.metadata.get("name") or declared.name.replace("_", "-")


def value_type(declared: "Field[Any]") -> tuple[type, bool]:
    """The type of a setting's values (the first one of a union), and whether it may be None."""
    annotation: Any = declared.type
    is_union = isinstance(annotation, types.UnionType)
    kinds = typing.get_args(annotation) if is_union else (annotation,)
    return kinds[0], types.NoneType in kinds


class Settings:
    """The base class of settings: values have their fields' types and are within their ranges.

    Each field that is declared by `option` is an option of the commands that take the class.
    """

    panel: ClassVar[str]  # the heading in help texts

    def __post_init__(self) -> None:
        for declared in dataclasses.fields(self):  # type: ignore[arg-type]
            value, metadata = getattr(self, declared.name), declared.metadata
            (kind, optional), within = value_type(declared), metadata.get("within")
            if value is None and optional:
                continue
            if isinstance(value, str) and metadata.get("checked_by"):
                metadata["checked_by"](value)
                continue
            wanted, words = _KINDS.get(
                kind, (typing.get_origin(kind) or kind, f"a {kind.__name__}")
            )
            if not isinstance(value, wanted) or (isinstance(value, bool) and kind is not bool):
                words = "true or false" if kind is bool else words
            elif metadata.get("choices"):
                check_choice(option_name(declared), str(value), metadata["choices"])
                continue
            elif within is None or value in within:
                continue
            else:
                is_large = isinstance(value, Integral) and abs(int(value)) > _LARGEST
                words = f"{within}{f', and at most {_LARGEST:,}' * is_large}"
            text = "none" if value is None else ascii(value) if isinstance(value, str) else value
            raise SettingsError(f"{option_name(declared)} is {short(str(text))}, must be {words}.")


def check(ok: bool, message: str) -> None:
    """Raise SettingsError with this message unless ok."""
    if not ok:
        raise SettingsError(message)


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise SettingsError unless the value is one of the choices."""
    if value not in choices:
        raise unknown(name, value, choices, _LISTING.get(name, ""))
