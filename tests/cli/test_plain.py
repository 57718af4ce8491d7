from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import given, settings
from hypothesis import strategies as st

import zsntta_cli.cli
from zsntta_cli.cli import plain
from zsntta_cli.cli.command import misused


def commands() -> Iterator[Any]:
    waiting = [typer.main.get_command(zsntta_cli.cli.app)]
    while waiting:
        command: Any = waiting.pop()
        yield command
        waiting += getattr(command, "commands", {}).values()


def parameters() -> list[Any]:
    """Parameters of all commands, one of each sort; those with a callback are flags."""
    sorts: dict[Any, Any] = {}
    for command in commands():
        for parameter in command.params:
            info = parameter.type_descriptor.parameter_info
            sort = (
                str(parameter.type_descriptor.annotation), parameter.multiple, parameter.nargs,
                parameter.required, info.min, info.max, info.parser,
            )  # fmt: skip
            if not parameter.callback:
                sorts.setdefault(sort, parameter)
    return list(sorts.values())


def outcome(process: Any, context: Any, value: Any) -> tuple[str, Any]:
    try:
        taken = process(context, value)
    except type(misused("")) as error:
        return "refused", str(error)
    return "taken", list(taken) if isinstance(taken, list | tuple) else taken


NUMBERS = (st.integers() | st.floats() | st.floats(-3, 3)).map(str)
LIKE_NUMBERS = st.text("0123456789.-+_ eEinfa\n", max_size=8)
CHOICES = st.sampled_from(["table", "latex", "Latex", "seeds", "accuracy", "noise", "true", "no"])
PATHS = st.sampled_from([".", "/", "pyproject.toml", "no/such", "~", "", "a b"])


def made_plain(parameter: Any) -> Any:
    plain._take_plain(parameter)
    return parameter.__dict__.pop("process_value", parameter.process_value)


@settings(deadline=None)  # the first one of a sort loads and builds its validator
@given(st.sampled_from(parameters()), st.data())
def test_a_plain_value_is_taken_as_typer_takes_it(parameter: Any, data: st.DataObject) -> None:
    one = NUMBERS | LIKE_NUMBERS | CHOICES | PATHS | st.text("aé\x7f𝟙=", max_size=4)
    several = parameter.multiple or parameter.nargs == -1
    value = data.draw(st.none() | (st.lists(one, min_size=1, max_size=3) if several else one))
    context = typer.Context(typer.main.get_command(zsntta_cli.cli.app))
    typers = outcome(parameter.process_value, context, value)
    mine = made_plain(parameter)
    assert repr(outcome(mine, context, value)) == repr(typers)


def test_an_unreadable_path_is_left_to_typer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plain.os, "access", lambda *_: False)  # root may read all files
    with pytest.raises(ValueError, match="not readable"):
        plain._of_kind(Path, str(tmp_path))
    assert plain._of_kind(Path, str(tmp_path / "none")) == tmp_path / "none"
