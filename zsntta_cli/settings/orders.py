"""Orders of a stream by their names; some names have numbers behind a colon."""

import math
import re
from dataclasses import dataclass

from zsntta_cli.errors import SettingsError, UnknownName, short

_PLACING = ("burst", "late", "first")  # orders that place the OOD samples
PLAIN = ("shuffled", "class", "separate", *_PLACING)
DIRICHLET, NOTE, CLASSES = "dirichlet", "note", "classes"
BLOCKS = "shuffled-blocks"
_BLOCK = 65_536  # items of a block if no number is given
# The names in help texts.
ORDERS = (*PLAIN, BLOCKS, f"{DIRICHLET}:G", f"{NOTE}:D", f"{CLASSES}:A-B")
_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)(e-?\d+)?|inf")
_LARGEST = 1e6  # the largest concentration beside `inf`
_COUNT = re.compile(r"[1-9]\d{0,9}")
_EXAMPLES = {DIRICHLET: "0.1", NOTE: "0.1", CLASSES: "1-4", BLOCKS: str(_BLOCK)}
_SPAN = re.compile(r"([1-9]\d{0,5})-([1-9]\d{0,5})")


@dataclass(frozen=True)
class StreamOrder:
    """An order's name and its numbers.

    The numbers are a concentration, the fewest and the most classes, or the items of a block.
    """

    name: str
    values: tuple[float, ...] = ()


def parse_order(text: str) -> StreamOrder:
    """Parse the name of an order.

    Raises:
        UnknownName: there is no such order.
        SettingsError: the order does not take these numbers.
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
    if name == BLOCKS and (not colon or _COUNT.fullmatch(rest)):
        return StreamOrder(name, (int(rest or _BLOCK),))
    if name not in _EXAMPLES:
        raise UnknownName("order", text, ORDERS)
    example = f"{name}:{_EXAMPLES[name]}"
    raise SettingsError(f"order is {short(ascii(text))}, must be as {example}.")


def check_order(text: str) -> None:
    """Raise SettingsError unless a text names an order."""
    parse_order(text)


def order_leaves_noise(text: str) -> bool:
    """Whether an order only arranges the ID samples, so that OOD samples may be anywhere."""
    return text not in _PLACING
