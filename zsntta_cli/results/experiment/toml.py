"""A table of a TOML file whose keys are read with checks: errors name file, table and key."""

from collections.abc import Mapping, Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from zsntta_cli.errors import SettingsError, near, short
from zsntta_cli.settings.options import option_name, value_type
from zsntta_cli.settings.ratios import Ratio, parse_ratio
from zsntta_cli.simulation.runs import declared, no_setting

T = TypeVar("T")
_NONE = ("none", "adaptive")  # what stands for a setting that has no value


class TomlTable:
    """A table of the file; its keys may be written with dashes or underscores."""

    def __init__(self, path: Path, where: str, plain: Any) -> None:
        self.path, self.where = path, where
        if not isinstance(plain, dict):
            raise SettingsError(f"{path}: {where} must be a table.")
        self._plain = {name.replace("-", "_"): value for name, value in plain.items()}
        self._written = {name.replace("-", "_"): name for name in plain}
        if len(self._written) < len(plain):
            self.fail(where or "it", "has a key twice, with dashes and with underscores")

    def names(self) -> list[str]:
        """All keys, as the file writes them."""
        return list(self._written.values())

    def fail(self, name: str, words: str, remedy: str = "") -> NoReturn:
        """Raise a SettingsError about a key's value."""
        where = f"{self.where}: " if self.where else ""
        raise SettingsError(f"{self.path}: {where}{name} {words}.", remedy=remedy)

    def take(self, name: str) -> Any:
        """A key's value; None where the key is missing."""
        value = self._plain.get(name.replace("-", "_"))
        texts = (one for one in (value if isinstance(value, list) else [value]))
        if any("\0" in text for text in texts if isinstance(text, str)):
            self.fail(name, "has a NUL, which no name or path has")
        return value

    def only(self, *keys: str) -> None:
        """Refuse all other keys."""
        for key, name in self._written.items():
            if key not in keys:
                self.fail(short(name), f"is no key{near(key, keys)}: known are {', '.join(keys)}")

    def _one(self, name: str, kind: type[T] | tuple[type[T], ...], words: str, default: T) -> T:
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.fail(name, f"is {short(ascii(value))}, must be {words}")
        return value

    def text(self, name: str, default: str = "") -> str:
        """The text under a key."""
        return self._one(name, str, "a text", default)

    def flag(self, name: str) -> bool:
        """Whether a flag is set."""
        return self._one(name, bool, "true or false", False)

    def number(self, name: str, default: float) -> float:
        """The number under a key."""
        return float(self._one(name, (int, float), "a number", default))

    def texts(self, name: str) -> tuple[str, ...]:
        """The text or list of texts under a key, as a tuple."""
        return tuple(self._several(name, str, "a text or a list of texts"))

    def numbers(self, name: str) -> tuple[float, ...]:
        """The number or list of numbers under a key, as a tuple."""
        return tuple(self._several(name, (int, float), "a number or a list of numbers"))

    def ratios(self, name: str) -> tuple[Ratio, ...]:
        """The noise ratio or list of noise ratios under a key, as a tuple."""
        words = "a noise ratio or a list of them"
        texts = [str(one) for one in self._several(name, (int, float, str), words)]
        try:
            return tuple(map(parse_ratio, texts))
        except SettingsError as error:
            raise SettingsError(f"{self.path}: {self.where}: {error}") from error

    def _several(self, name: str, kind: Any, words: str) -> list[Any]:
        value = self.take(name)
        values = value if isinstance(value, list) else [] if value is None else [value]
        for item in values:
            if not isinstance(item, kind) or isinstance(item, bool):
                self.fail(name, f"is {short(str(value))}, must be {words}")
        return values

    def table(self, name: str) -> "TomlTable":
        """The table under a key; an empty one where the key is missing."""
        value = self.take(name)
        return TomlTable(self.path, self._within(name), {} if value is None else value)

    def _within(self, name: str) -> str:
        """The name of a table within this one."""
        return f"{self.where}, {name}" if self.where else f"[{name}]"

    def tables(self, name: str) -> "list[TomlTable]":
        """The list of tables under a key."""
        values = self.take(name)
        if values is not None and not isinstance(values, list):
            self.fail(name, f"must be a list of tables, [[{name}]]")
        where = self._within(name) if self.where else f"[[{name}]]"
        return [
            TomlTable(self.path, f"{where} {i}", value) for i, value in enumerate(values or [], 1)
        ]

    def settings(self, methods: Sequence[str], more: Sequence[str] = ()) -> dict[str, list[Any]]:
        """All keys as settings of some methods with their values, each a single value or a list.

        `more` are texts that a filter has beside the settings.
        """
        fields = {name: field for method in methods for name, field in declared(method).items()}
        options = _by_any_name(fields) | dict(zip(more, more, strict=True))
        settings: dict[str, list[Any]] = {}
        for key, written in self._written.items():
            if key not in options:
                wrong = no_setting(written.replace("_", "-"), methods)
                self.fail(short(written), wrong.partition(" ")[2], remedy="list-settings")
            value, name = self.take(key), options[key]
            values = value if isinstance(value, list) else [value]
            optional = name in fields and value_type(fields[name])[1]
            settings[name] = [None if optional and v in _NONE else v for v in values]
        return settings


def _by_any_name(fields: Mapping[str, "Field[Any]"]) -> dict[str, str]:
    """Settings by their names and by the names of their options: `threshold` is `fixed`."""
    options = {name: name for name in fields}
    for name, field in fields.items():
        options.setdefault(option_name(field).replace("-", "_"), name)
    return options
