"""Help pages: commands by what they are for, nothing cut, and a short page where all is long."""

import shlex

import pytest

from zsntta_cli.cli import COMMANDS
from zsntta_cli.cli.pages import COMMAND_GROUPS, EXAMPLES, SHORT_PAGES

NARROW = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    for name, columns in NARROW.items():
        monkeypatch.setenv(name, columns)


def summaries():
    for name, command in COMMANDS.items():
        yield name, command
        yield from getattr(command, "commands", {}).items()


def test_every_command_stands_under_one_heading():
    assert sorted(name for names in COMMAND_GROUPS.values() for name in names) == sorted(COMMANDS)


def test_no_summary_is_cut(zsntta):
    for name, command in summaries():
        assert 0 < len(command.help.splitlines()[0]) <= 60, name
    pages = [("-h",)] + [(name, "-h") for name in COMMANDS if hasattr(COMMANDS[name], "commands")]
    for words in pages:
        page = zsntta(*words).stdout
        assert "..." not in page.partition("Options:")[2]
        assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize("name", SHORT_PAGES)
def test_a_short_page_and_a_whole_one(zsntta, name):
    short, whole = zsntta(name, "-h").stdout, zsntta(name, "--help", "--all").stdout
    options = {option for of in SHORT_PAGES[name].values() for option in of}
    assert len(options) <= 25
    assert len(short.splitlines()) <= 80
    for parameter in COMMANDS[name].params:
        [option, *_] = parameter.opts
        assert f"{option} " in whole
        assert (f"\n  {option} " in short) == (option in options), option
    assert {option for p in COMMANDS[name].params for option in p.opts} >= options - {"--help"}


@pytest.mark.parametrize("example", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_is_a_line_that_is_understood(example):
    _, name, *words = shlex.split(example)
    assert COMMANDS[name].make_context(name, words).params
