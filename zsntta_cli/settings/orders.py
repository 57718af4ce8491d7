"""Orders of a stream by their names; some names have a number behind a colon."""

import math
import re

from zsntta_cli.errors import SettingsError, UnknownName, short

PLAIN = ("shuffled", "class", "burst", "late", "first")
DIRICHLET, PARTS = "dirichlet", "parts"
ORDERS = (*PLAIN, f"{DIRICHLET}:G", f"{PARTS}:N")  # the names in help texts
_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)(e-?\d+)?|inf")
_LARGEST = 1e6  # the largest concentration beside `inf`
_PARTS = re.compile(r"[1-9]\d{0,5}")


def parse_order(text: str) -> tuple[str, tuple[float, ...]]:
    """Parse the name of an order: the name, and the concentration or the parts of one with any.

    Raises:
        UnknownName: there is no such order.
        SettingsError: the order does not take this number.
    """
    name, colon, rest = text.partition(":")
    if name in PLAIN and not colon:
        return name, ()
    if name == PARTS:
        if not _PARTS.fullmatch(rest):
            raise SettingsError(f"order is {short(ascii(text))}, must be as {PARTS}:15.")
        return name, (int(rest),)
    if name != DIRICHLET:
        raise UnknownName("order", text, ORDERS)
    concentration = float(rest) if _NUMBER.fullmatch(rest) else math.nan
    if not (0 < concentration <= _LARGEST or math.isinf(concentration)):
        raise SettingsError(f"order is {short(ascii(text))}, must be as {DIRICHLET}:0.1.")
    return name, (concentration,)
