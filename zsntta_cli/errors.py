"""Errors a user can cause: each is one line, with the command to type where there is one.

The command line exits with 2 on a SettingsError, which is evident from the command alone, and with
1 on all others.
"""

import difflib
import json
import unicodedata
from collections.abc import Sequence

_MOST_NAMES = 12  # that one line names; near() has looked at all
_LINE = 200  # characters of another program's words
_STEERING = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")  # Unicode's categories of what steers a terminal


class ZsnttaError(Exception):
    """Base of all errors of the package: the message says what is wrong and what would be right."""


class SettingsError(ZsnttaError, ValueError):
    """A setting out of its range, or two settings that exclude each other."""


class DatasetError(ZsnttaError):
    """A data set that is unknown, missing or broken."""


class EncoderError(ZsnttaError):
    """A model or its weights cannot be loaded."""


class StoreError(ZsnttaError):
    """A feature file is missing, broken, from another source, or cannot be written."""


def unknown(what: str, value: str, choices: Sequence[str], listing: str = "") -> SettingsError:
    """The error for a name that is not a valid choice; `listing` tells what lists all choices."""
    value, meant = short(value), near(value, choices)
    listed = f": {listing}" if listing and len(choices) > _MOST_NAMES else "."
    if meant and len(choices) > _MOST_NAMES:
        return SettingsError(f"{what} is '{value}'{meant}{listed}")
    named = f"must be one of: {first_of(choices)}"
    return SettingsError(f"{what} is '{value}'{meant}, {named}{listed}")


def near(value: str, choices: Sequence[str]) -> str:
    """A question that suggests the choice closest to a value; empty if none is close."""
    matches = difflib.get_close_matches(value, [str(choice) for choice in choices], 1)
    return f" (did you mean '{matches[0]}'?)" if matches else ""


def counted(count: int, what: str, several: str = "") -> str:
    """A count with its noun, whose plural is `several` or adds an s."""
    return f"{count:,} {what if count == 1 else several or f'{what}s'}"


def first_of(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def first_line(error: BaseException) -> str:
    """The first line of a library's error message, or the error's type if it has no message."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if isinstance(error.filename, str) else ""
        return short(f"{error.strerror}{where}", _LINE)
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, json.JSONDecodeError):
        line = f"line {error.lineno:,}, " if error.lineno > 1 else ""
        return f"invalid JSON at {line}column {error.colno:,}"
    lines = str(error).strip().splitlines()
    return short(lines[0], _LINE) if lines else type(error).__name__


def short(text: str, most: int = 60) -> str:
    """A text, cut if it is too long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def printable(text: str, kept: str = "") -> str:
    """A text that a terminal can show: control characters are escaped, except those in `kept`.

    One line stays one line unless `kept` has newlines.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        ascii(c)[1:-1] if unicodedata.category(c) in _STEERING and c not in kept else c
        for c in text
    )
