"""What people type as values: lists and ranges (`--seed 0-4`, `--ratio .25,.5`), names in any case.

A reader makes all values that one text stands for; a command gets those of all texts in one list.
"""

import re
from typing import Any

import typer

from zsntta_cli.errors import short
from zsntta_cli.methods import METHODS

_MOST = 10_000  # values that one text may stand for
_RANGE = re.compile(r"([0-9]+) ?[-‐‑‒–—] ?([0-9]+)")  # a dash of a text processor is one too


class Several(list[Any]):
    """The values that one text stands for."""


def texts(text: str) -> Several:
    """The parts between commas.

    Raises:
        BadParameter: a part is empty.
    """
    parts = Several(map(str.strip, text.split(",")))
    if not all(parts):
        raise typer.BadParameter(f"'{short(text)}' has an empty part: type a list such as a,b.")
    return parts


def whole_numbers(text: str) -> Several:
    """Whole numbers: 3, a list 0,2 or a range 0-4.

    Raises:
        BadParameter: a part is no number, or a range goes down or has more than 10,000 values.
    """
    return Several(number for part in texts(text) for number in _range(part))


def counted_seeds(text: str) -> Several:
    """The seeds that a count stands for: 5 are 0 to 4.

    Raises:
        BadParameter: the text is no count.
    """
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MOST):
        raise typer.BadParameter(
            f"'{short(text)}' is not a number of seeds from 1 to {_MOST:,}: 5 stands for 0-4."
        )
    return Several(range(int(text)))


def numbers(text: str) -> Several:
    """Numbers, between commas.

    Raises:
        BadParameter: a part is no number.
    """
    try:
        return Several(map(float, texts(text)))
    except ValueError:
        raise typer.BadParameter(f"'{short(text)}' is not a number or a list of them.") from None


def truths(text: str) -> Several:
    """Values that are true or false, as people write them.

    Raises:
        BadParameter: a part is neither.
    """
    words = [part.lower() for part in texts(text)]
    if {*words} - {"true", "yes", "false", "no"}:
        raise typer.BadParameter(f"'{short(text)}' must be true or false.")
    return Several(word in ("true", "yes") for word in words)


def names(text: str) -> Several:
    """Names of methods, sets, presets or encoders, between commas, in any case."""
    return Several(map(in_known_case, texts(text)))


def data_sets(text: str) -> Several:
    """Names of data sets between commas, or one NAME=PATH, whose path may have commas."""
    return Several([text] if "=" in text else map(known_set, texts(text)))


def in_known_case(name: str) -> str:
    """A known method, set, preset or encoder typed in any case, as it is written; others as is."""
    base, colon, rest = name.partition(":")
    if name == name.lower():
        return name
    from zsntta_cli.datasets import CATALOGUE
    from zsntta_cli.simulation.runs import PRESETS

    is_known = base.lower() in {*METHODS, *CATALOGUE, *PRESETS, "tiny"}
    return base.lower() + colon + rest if is_known and "=" not in name else name


def known_set(name: str) -> str:
    """A known set by its name, in any case, or by another name that people type for it."""
    from zsntta_cli.datasets.catalogue import ALIASES, CATALOGUE

    base, colon, rest = name.partition(":")
    is_own = "=" in name or base.lower() in CATALOGUE
    other = "" if is_own else ALIASES.get(base.lower(), "")
    return other + colon + rest if other else in_known_case(name)


def _range(text: str) -> list[int]:
    if not (typed := _RANGE.fullmatch(text)):
        try:
            return [int(text)]
        except ValueError:
            raise typer.BadParameter(
                f"'{short(text)}' is not a whole number, a list such as 0,1,2 or a range such as "
                "0-4."
            ) from None
    first, last = map(int, typed.groups())
    if last < first:
        raise typer.BadParameter(f"the range '{short(text)}' goes down: type {last}-{first}.")
    if last - first >= _MOST:
        raise typer.BadParameter(
            f"the range '{short(text)}' has more than {_MOST:,} values, which is the most."
        )
    return [*range(first, last + 1)]
