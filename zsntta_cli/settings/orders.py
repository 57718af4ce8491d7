"""Orders of a stream by their names, with the numbers that some of them take behind a colon."""

import math
import re
from dataclasses import dataclass

from zsntta_cli.errors import SettingsError, UnknownName, short

_PLACING = ("burst", "late", "first")  # they say where OOD samples stand
PLAIN = ("shuffled", "class", "separate", *_PLACING)
DIRICHLET, NOTE, CLASSES = "dirichlet", "note", "classes"
ORDERS = (*PLAIN, f"{DIRICHLET}:G", f"{NOTE}:D", f"{CLASSES}:A-B")  # as help texts have them
_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)(e-?\d+)?|inf")
_LARGEST = 1e6  # of a concentration; above it is `inf`
_SPAN = re.compile(r"([1-9]\d{0,5})-([1-9]\d{0,5})")


@dataclass(frozen=True)
class StreamOrder:
    """An order's name, and its numbers: a concentration, or the fewest and the most classes."""

    name: str
    values: tuple[float, ...] = ()


def parse_order(text: str) -> StreamOrder:
    """The order that a text names.

    Raises:
        UnknownName: no such order. SettingsError: numbers that it does not take.
    """
    name, colon, rest = text.partition(":")
    if name in PLAIN and not colon:
        return StreamOrder(name)
    if name in (DIRICHLET, NOTE) and _NUMBER.fullmatch(rest):
        concentration = float(rest)
        if 0 < concentration <= _LARGEST or math.isinf(concentration):
            return StreamOrder(name, (concentration,))
    if name == CLASSES and (span := _SPAN.fullmatch(rest)) and int(span[1]) <= int(span[2]):
        return StreamOrder(name, (int(span[1]), int(span[2])))
    if name not in (DIRICHLET, NOTE, CLASSES):
        raise UnknownName("order", text, ORDERS)
    example = f"{name}:1-4" if name == CLASSES else f"{name}:0.1"
    raise SettingsError(f"order is {short(ascii(text))}, must be as {example}.")


def check_order(text: str) -> None:
    """Raise SettingsError unless a text names an order."""
    parse_order(text)


def order_leaves_noise(text: str) -> bool:
    """Whether an order is one of ID samples alone, and OOD samples may stand anywhere."""
    return text not in _PLACING
