"""Help pages: all commands and options are told of, in 80 columns, and examples are understood."""

import re
import shlex
import subprocess
import typing

import pytest
from made import ZSNTTA
from typed import understood

from zsntta_cli.cli import program

COMMANDS = program().commands
RUNNABLE = {
    f"{name} {sub}".strip(): leaf
    for name, command in COMMANDS.items()
    for sub, leaf in getattr(command, "commands", {"": command}).items()
}


def test_the_page_of_all_commands_tells_of_each_as_its_own_page_does():
    told = program([]).commands
    assert [*told] == [*COMMANDS]
    for name, command in COMMANDS.items():
        assert command.help.split("\n")[0] == told[name].help, name


@pytest.mark.parametrize("name", ["", *sorted({*COMMANDS} - {*RUNNABLE}), *RUNNABLE])
def test_a_page_fits_a_terminal_and_shows_every_option(zsntta, monkeypatch, name):
    for variable in ("COLUMNS", "TERMINAL_WIDTH"):
        monkeypatch.setenv(variable, "80")
    page = zsntta(*name.split(), "-h")
    assert page.exit_code == 0
    assert "Usage: " in page.stdout
    assert max(map(len, page.stdout.splitlines())) <= 80
    if name in RUNNABLE:
        options = [p for p in RUNNABLE[name].params if p.param_type_name == "option"]
        assert all(f"{option.opts[0]} " in page.stdout for option in options)


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_example_on_a_page_is_understood(name):
    examples = re.findall(r"\[bold\]zsntta (.*?)\[/bold\]", RUNNABLE[name].help)
    assert examples
    for example in examples:
        assert example.startswith(name)
        understood(shlex.split(example))


def value(option):
    """A text that an option takes."""
    if option.opts[0] == "--output":
        return "a.csv"
    if option.metavar and "|" in option.metavar:
        return option.metavar.split("|")[0]
    written = {"INTEGERS": "1,2-3", "NUMBERS": "0.25,0.5", "N": "2"}
    kind = option.type_descriptor.annotation
    if choices := typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ():
        return choices[0]
    numbers = {int: str(getattr(option, "min", None) or 1), float: "3"}
    return written.get(option.metavar) or numbers.get(kind, "a")


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_option_is_understood_once_typed(name):
    options = [p for p in RUNNABLE[name].params if p.param_type_name == "option"]
    words = ["a" for p in RUNNABLE[name].params if p not in options and p.required]
    words += [w for one in options if one.required for w in (one.opts[0], value(one))]
    for option in options:
        if not (option.is_eager or option.required):
            typed = [*words, option.opts[0], *([] if option.is_flag else [value(option)])]
            given = understood([*name.split(), *typed])
            assert given[option.name] not in (None, [], ()), typed


@pytest.mark.parametrize(
    ("group", "stands_for"),
    [("", "--help"), ("cache", "--help"), ("datasets", "list"), ("records", "list")],
)
def test_a_group_without_a_command_helps_or_lists(tmp_path, group, stands_for):
    """In processes of their own: what the entry point gives back is seen here."""

    def ask(*words):
        command = [ZSNTTA, *group.split(), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.rstrip(), done.stderr

    assert ask() == ask(stands_for)
