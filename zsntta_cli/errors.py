"""Errors a user can cause. They carry values; the command line prints one line of them.

It exits with 2 on a SettingsError, which the command alone can tell, and with 1 on all others.

ZsnttaError
├── SettingsError     a setting out of its range, or two that do not go together; a ValueError, too
│   ├── UnknownName     a name that is none of its choices
│   ├── PluginError     a script of one's own that cannot be loaded
│   └── NotOfMethods    a setting that none of the chosen methods has
├── DatasetError      a data set that is unknown, missing or broken
├── EncoderError      a model or its weights cannot be had
└── StoreError        a feature file is missing, broken, foreign or cannot be written
    ├── MissingFeatures a set that has no feature file
    ├── MissingSets     sets of which several lack a feature file
    ├── MissingText     a prompt template that no text features are cached for
    ├── MissingWords    no word list, or none that is meant
    ├── UnknownMethod   a method of a record that only its own code can run again
    └── NoPartner       an ID set without a cached OOD set

What to type stands in `cli/line/hints.py` alone: an error's type or its `remedy` become a command
there.
"""

import difflib
import json
import unicodedata
from collections.abc import Mapping, Sequence

_CACHED = 6  # of the sets that there are in place of one that is missing
_LINE = 200  # characters of another program's words


class ZsnttaError(Exception):
    """Base of all errors of the package: the message says what is wrong and what would be right."""

    remedy: str = ""  # a word for what mends it

    def __init__(self, *args: object, remedy: str = "") -> None:
        super().__init__(*args)
        if remedy:
            self.remedy = remedy


class SettingsError(ZsnttaError, ValueError):
    """A setting out of its range, or two settings that do not go together."""


class DatasetError(ZsnttaError):
    """A data set that is unknown, missing or broken."""


class EncoderError(ZsnttaError):
    """A model or its weights cannot be had."""


class StoreError(ZsnttaError):
    """A feature file is missing, broken, foreign, or cannot be written."""


_MOST_NAMES = 12  # that one line names; near() has looked at all
_MOST_METHODS = 3  # of those that have a setting, or that have not


class UnknownName(SettingsError):
    """A name that is none of its choices."""

    def __init__(self, what: str, value: str, choices: Sequence[str]) -> None:
        super().__init__(what, value, choices)
        self.what, self.value, self.choices = what, value, choices

    @property
    def is_cut(self) -> bool:
        """Whether there are more choices than a line names."""
        return len(self.choices) > _MOST_NAMES

    def __str__(self) -> str:
        value = short(self.value)
        meant = near(value, self.choices)
        if meant and self.is_cut:
            return f"{self.what} is '{value}'{meant}."
        return f"{self.what} is '{value}'{meant}, must be one of: {first_of(self.choices)}."


class PluginError(SettingsError):
    """A script of one's own, or a distribution, whose methods or data sets cannot be had."""


class UnknownMethod(StoreError):
    """A method of a record whose code is not here: its runs can be shown, not repeated."""

    def __init__(self, method: str, files: Sequence[str] = ()) -> None:
        super().__init__(method, files)
        self.method, self.files = method, files  # of its source, the script first

    def __str__(self) -> str:
        return f"the code of the method '{short(self.method)}' is not here"


class NoPartner(StoreError):
    """A noise ratio above 0, and no OOD set of an ID set's partners is cached."""

    remedy = "name-ood"

    def __init__(self, id_set: str, where: str, partners: Sequence[str]) -> None:
        super().__init__(id_set, where, partners)
        self.id_set, self.where, self.partners = id_set, where, partners

    def __str__(self) -> str:
        if not self.partners:
            return f"a noise ratio above 0 needs an OOD set beside '{self.id_set}'"
        return f"no OOD partner of '{self.id_set}' is cached in {self.where}"


class NotOfMethods(SettingsError):
    """A setting that none of the chosen methods has."""

    def __init__(self, setting: str, chosen: Sequence[str], having: Sequence[str]) -> None:
        super().__init__(setting, chosen, having)
        self.setting, self.chosen, self.having = setting, chosen, having

    def __str__(self) -> str:
        chosen, having = (first_of(names, _MOST_METHODS) for names in (self.chosen, self.having))
        return f"{self.setting} is no setting of {chosen}: it is one of {having}."


class MissingFeatures(StoreError):
    """A set that has no feature file."""

    def __init__(self, name: str, encoder: str, root: str, there: Sequence[str] = ()) -> None:
        super().__init__(name, encoder, root, there)
        self.name, self.encoder, self.root, self.there = name, encoder, root, there

    def __str__(self) -> str:
        by = f" by {self.encoder}" if self.encoder else ""
        cached = f" (cached: {first_of(self.there, _CACHED)})" if self.there else ""
        meant = near(self.name, self.there) or cached
        return f"no features of '{self.name}'{by} in {self.root}/{meant}"


class MissingSets(StoreError):
    """Sets that have no feature file, where none of what was asked for can be had without them."""

    def __init__(self, missing: Mapping[str, Sequence[str]], root: str) -> None:
        super().__init__(missing, root)
        self.missing, self.root = missing, root  # names by the folder of their encoder

    def __str__(self) -> str:
        sets = " and ".join(f"{len(names)} by {folder}" for folder, names in self.missing.items())
        return f"feature files that are not in {self.root}/: {sets}"


class MissingText(StoreError):
    """A prompt template that no text features of a set's class names are cached for."""

    def __init__(
        self,
        prompt: str,
        name: str,
        cached: Sequence[str],
        limit: int | None = None,
        encoder: str = "",
    ) -> None:
        super().__init__(prompt, name, cached, limit, encoder)
        self.prompt, self.name, self.cached = prompt, name, cached
        self.limit = limit  # of the extraction that made the set
        self.encoder = encoder  # the folder of its features

    def __str__(self) -> str:
        cached = ", ".join(f"'{short(template)}'" for template in self.cached) or "none"
        prompt = short(self.prompt)
        return f"the prompt '{prompt}' is not cached for '{self.name}' (cached: {cached})"


class MissingWords(StoreError):
    """No word list is cached, or several and none is named."""

    def __init__(self, method: str, cached: Sequence[str], encoder: str = "") -> None:
        super().__init__(method, cached, encoder)
        self.method, self.cached, self.encoder = method, cached, encoder

    def __str__(self) -> str:
        return f"{self.method} needs a word list (cached: {', '.join(self.cached) or 'none'})"


def near(value: str, choices: Sequence[str]) -> str:
    """A question after the one of the choices that is close to a value; nothing where none is."""
    matches = difflib.get_close_matches(value, [str(choice) for choice in choices], 1)
    return f" (did you mean '{matches[0]}'?)" if matches else ""


def counted(count: int, what: str, several: str = "") -> str:
    """A number of things in words; several of them have an s, or another form."""
    return f"{count:,} {what if count == 1 else several or f'{what}s'}"


def first_of(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def first_line(error: BaseException) -> str:
    """The first line of what a foreign library says; its type's name where it says nothing."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if isinstance(error.filename, str) else ""
        return short(f"{error.strerror}{where}", _LINE)
    if isinstance(error, UnicodeDecodeError):
        return "it is no UTF-8 text"
    if isinstance(error, json.JSONDecodeError):
        line = f"line {error.lineno:,}, " if error.lineno > 1 else ""
        return f"it is no JSON at {line}column {error.colno:,}"
    lines = str(error).strip().splitlines()
    return short(lines[0], _LINE) if lines else type(error).__name__


def short(text: str, most: int = 60) -> str:
    """A text that is cut where it is long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def printable(text: str, kept: str = "") -> str:
    """A text as a terminal may show it: what would steer it is written out, but for what is kept.

    A line stays one line where no new lines are kept.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in kept or _is_harmless(c) else ascii(c)[1:-1] for c in text)


def _is_harmless(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
