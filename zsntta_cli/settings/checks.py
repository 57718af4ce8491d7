"""Checks of values: one line that says what is wrong and what would be right."""

from zsntta_cli.errors import SettingsError


def check(ok: bool, message: str) -> None:
    """Raise SettingsError with this message unless ok."""
    if not ok:
        raise SettingsError(message)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise SettingsError unless the value is one of the choices."""
    check(value in choices, f"{name} is '{value}', must be one of: {', '.join(choices)}.")
