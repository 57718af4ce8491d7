"""Help pages: all commands and options are told of, by examples that are understood."""

import re
import shlex

import pytest

from zsntta_cli.cli import COMMANDS
from zsntta_cli.cli.line.pages import COMMAND_GROUPS, EXAMPLES, SHORT_PAGES, described

GROUPS = {name for name, command in COMMANDS.items() if hasattr(command, "commands")}
RUNNABLE = {
    f"{name} {sub}".strip(): leaf
    for name, command in COMMANDS.items()
    for sub, leaf in getattr(command, "commands", {"": command}).items()
}


def test_every_command_stands_under_one_heading():
    assert sorted(name for names in COMMAND_GROUPS.values() for name in names) == sorted(COMMANDS)


def test_every_option_has_its_help():
    for name, command in {**COMMANDS, **RUNNABLE}.items():
        assert command.help.strip(), name
        for parameter in command.params:
            is_option = parameter.param_type_name == "option"
            assert not is_option or (parameter.help or "").strip(), f"{name}: {parameter.opts}"


@pytest.mark.parametrize("name", ["", *sorted(GROUPS), *RUNNABLE])
def test_a_page_fits_a_terminal_and_has_the_commands_examples(zsntta, monkeypatch, name):
    for variable in ("COLUMNS", "TERMINAL_WIDTH"):
        monkeypatch.setenv(variable, "80")
    page, whole = (zsntta(*name.split(), "-h", *more) for more in ((), ("--all",)))
    assert page.exit_code == whole.exit_code == 0
    assert "Usage: " in whole.stdout
    assert max(map(len, [*page.stdout.splitlines(), *whole.stdout.splitlines()])) <= 80
    words = page.stdout.split()
    assert EXAMPLES[name]
    for example in map(str.split, EXAMPLES[name]):
        assert example in [words[i:][: len(example)] for i in range(len(words))]


@pytest.mark.parametrize("name", SHORT_PAGES)
def test_a_short_page_has_some_options_and_the_whole_one_all(zsntta, name):
    short, whole = zsntta(name, "-h").stdout, zsntta(name, "--help", "--all").stdout
    options = {option for of in SHORT_PAGES[name].values() for option in of}
    for parameter in COMMANDS[name].params:
        [option, *_] = parameter.opts
        if option.startswith("-"):
            assert re.search(rf" {option}[ ,]", whole), option
            assert (f"\n  {option} " in short) == (option in options), option
    assert {option for p in COMMANDS[name].params for option in p.opts} >= options - {"--help"}


@pytest.mark.parametrize("name", RUNNABLE)
def test_an_example_is_a_line_that_is_understood(name):
    for example in EXAMPLES[name]:
        words = shlex.split(example)[1:]
        assert words[: len(name.split())] == name.split()
        assert RUNNABLE[name].make_context(name, words[len(name.split()) :]).params


def test_ranges_and_defaults_are_words():
    assert described("It.  [default: 2; x>=1]") == "It (1 or more). [2]"
    assert described("It.  [default: 3.25; 2<=x<=20]") == "It (2 to 20). [3.25]"
    assert described("It. [0 to 4]  [x>=0]") == "It (0 or more). [0 to 4]"
    assert described("It.  [required]") == "It. [required]"
