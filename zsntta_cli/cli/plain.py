"""Values of options that need no validator: typer builds one for every option with Pydantic.

Loading that and building 140 of them is 80 ms, a sixth of a short command. What is refused here
goes to typer, which knows all rules and words the error.
"""

import os
import typing
from pathlib import Path
from typing import Any

_DIGITS = frozenset("0123456789+-.eE")  # of a number; Python and typer know others, each its own


class TakesPlain:
    """A command, or a group of some, whose parameters take plain values as they are."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, the help option among them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if "process_value" not in vars(parameter):  # or it was seen before
                _take_plain(parameter)
        return parameters


def _take_plain(parameter: Any) -> None:
    described = getattr(parameter, "type_descriptor", None)  # of typer's versions with Pydantic
    validated = parameter.process_value

    def process_value(ctx: Any, value: Any) -> Any:
        try:
            taken = _plain(parameter, described, value)
        except (TypeError, ValueError):
            return validated(ctx, value)
        return parameter.callback(ctx, parameter, taken) if parameter.callback else taken

    if described is not None and not parameter.required:
        parameter.process_value = process_value


def _plain(parameter: Any, described: Any, value: Any) -> Any:
    """A value as its type has it; () for one that may be repeated and is not given."""
    several = parameter.multiple or parameter.nargs == -1
    if value is None:
        return () if several else None
    rules = described.parameter_info
    if rules.parser or (rules.min, rules.max) != (None, None):
        raise ValueError
    if not several:
        return _of_kind(described.annotation, value)
    [kind] = typing.get_args(described.annotation)
    return [_of_kind(kind, one) for one in value]


def _of_kind(kind: Any, value: Any) -> Any:
    """A text or a default as a text, a number, a path or a choice; ValueError where it is none."""
    is_number = kind in (int, float) and isinstance(value, str) and {*value} <= _DIGITS
    if value in typing.get_args(kind) or (isinstance(kind, type) and isinstance(value, kind)):
        taken = value
    elif is_number or (kind is Path and isinstance(value, str)):
        taken = kind(value)
    else:
        raise ValueError
    if isinstance(taken, Path) and os.path.exists(taken) and not os.access(taken, os.R_OK):
        raise ValueError("it is not readable")
    return taken
