"""Checks of values: one line that says what is wrong and what would be right."""

from collections.abc import Sequence

from zsntta_cli.errors import SettingsError, UnknownName


def check(ok: bool, message: str) -> None:
    """Raise SettingsError with this message unless ok."""
    if not ok:
        raise SettingsError(message)


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise UnknownName unless the value is one of the choices."""
    if value not in choices:
        raise UnknownName(name, value, tuple(choices))
