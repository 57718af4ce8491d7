"""What people type as values: lists and ranges (`--seed 0-4`, `--ratio .25,.5`), names in any case.

A reader turns one text into a list of values, and raises SettingsError if that is not possible.
"""

import re
from collections.abc import Callable
from typing import Any

from zsntta_cli.datasets.catalogue import ALIASES, CATALOGUE
from zsntta_cli.errors import SettingsError, short
from zsntta_cli.methods import METHODS
from zsntta_cli.settings import TINY, Ratio, parse_ratio
from zsntta_cli.simulation.runs import PRESETS

Reader = Callable[[str], list[Any]]
ADAPTIVE = "adaptive"  # of thresholds: none is fixed
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}
_MOST = 10_000  # values that one text may stand for
_RANGE = re.compile(r"([0-9]+) ?[-‐‑‒–—] ?([0-9]+)")  # a dash of a text processor is one too


def texts(text: str) -> list[str]:
    """The parts between commas."""
    parts = [*map(str.strip, text.split(","))]
    if not all(parts):
        raise SettingsError(f"'{short(text)}' has an empty part: type a list such as a,b.")
    return parts


def whole_numbers(text: str) -> list[int]:
    """Whole numbers: 3, a list 0,2 or a range 0-4."""
    values: list[int] = []
    for part in texts(text):
        if not (typed := _RANGE.fullmatch(part)):
            try:
                values.append(int(part))
            except ValueError:
                raise SettingsError(
                    f"'{short(part)}' is not a whole number, a list such as 0,1,2 or a range such "
                    "as 0-4."
                ) from None
            continue
        first, last = map(int, typed.groups())
        if last < first:
            raise SettingsError(f"the range '{short(part)}' goes down: type {last}-{first}.")
        if last - first >= _MOST:
            raise SettingsError(
                f"the range '{short(part)}' has more than {_MOST:,} values, the maximum."
            )
        values += range(first, last + 1)
    return values


def numbers(text: str) -> list[float]:
    """Numbers, between commas."""
    parts = texts(text)
    try:
        return [*map(float, parts)]
    except ValueError:
        raise SettingsError(f"'{short(text)}' is not a number or a list of them.") from None


def truths(text: str) -> list[bool]:
    """Values that are true or false, as people write them."""
    words = [part.lower() for part in texts(text)]
    if not _TRUTHS.keys() >= {*words}:
        raise SettingsError(f"'{short(text)}' must be true or false.")
    return [_TRUTHS[word] for word in words]


def ratios(text: str) -> list[Ratio]:
    """Noise ratios: numbers in [0, 1), or natural."""
    return [parse_ratio(part) for part in texts(text)]


def thresholds(text: str) -> list[float | None]:
    """Fixed thresholds as numbers, and the adaptive one as None."""
    return [None if part == ADAPTIVE else numbers(part)[0] for part in texts(text)]


def names(text: str) -> list[str]:
    """Names of methods, sets, presets or encoders, between commas, in any case."""
    return [*map(in_known_case, texts(text))]


def data_sets(text: str) -> list[str]:
    """Names of data sets between commas, or one NAME=PATH, whose path may have commas."""
    return [text] if "=" in text else [known_set(part) for part in texts(text)]


def in_known_case(name: str) -> str:
    """A known method, set, preset or encoder in its own letter case; other names unchanged."""
    base, colon, rest = name.partition(":")
    is_known = base.lower() in {*METHODS, *CATALOGUE, *PRESETS, TINY}
    return base.lower() + colon + rest if is_known and "=" not in name else name


def known_set(name: str) -> str:
    """The name of a known set, typed in any case or as a synonym; other names unchanged."""
    base, colon, rest = name.partition(":")
    is_own = "=" in name or base.lower() in CATALOGUE
    other = "" if is_own else ALIASES.get(base.lower(), "")
    return other + colon + rest if other else in_known_case(name)
