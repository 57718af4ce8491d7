"""Help pages: commands by what they are for, nothing cut, and a short page where all is long."""

import re
import shlex

import pytest

from zsntta_cli.cli import COMMANDS
from zsntta_cli.cli.line.pages import COMMAND_GROUPS, EXAMPLES, SHORT_PAGES, described

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
    assert short.index("Examples:") < short.index(" -h, --help")
    for parameter in COMMANDS[name].params:
        [option, *_] = parameter.opts
        if option.startswith("-"):
            assert re.search(rf" {option}[ ,]", whole), option
            assert (f"\n  {option} " in short) == (option in options), option
    assert {option for p in COMMANDS[name].params for option in p.opts} >= options - {"--help"}


def test_every_option_has_its_help():
    for name, command in summaries():
        for parameter in command.params:
            is_option = parameter.param_type_name == "option"
            assert not is_option or (parameter.help or "").strip(), f"{name}: {parameter.opts}"


def test_every_page_fits_a_screen_and_every_command_knows_all(zsntta):
    for words in [(), *(name.split() for name, _ in runnable()), *([name] for name in COMMANDS)]:
        assert len(zsntta(*words, "-h").stdout.splitlines()) <= 60, words
        whole = zsntta(*words, "-h", "--all")
        assert whole.exit_code == 0, words
        assert "Usage: " in whole.stdout, words


def runnable():
    for name, command in COMMANDS.items():
        subs = getattr(command, "commands", {})
        yield from [(f"{name} {sub}", subs[sub]) for sub in subs] or [(name, command)]


def test_every_page_has_an_example(zsntta):
    names = {"", *(name.partition(" ")[0] for name, _ in runnable()), *dict(runnable())}
    assert names == {*EXAMPLES}
    for name, examples in EXAMPLES.items():
        page = zsntta(*name.split(), "-h").stdout.split()
        for example in examples:
            assert example.split() in [page[i:][: len(example.split())] for i in range(len(page))]


@pytest.mark.parametrize("name", dict(runnable()))
def test_an_example_is_a_line_that_is_understood(name):
    command = dict(runnable())[name]
    for example in EXAMPLES[name]:
        words = shlex.split(example)[1:]
        assert words[: len(name.split())] == name.split()
        assert command.make_context(name, words[len(name.split()) :]).params


def test_values_have_one_notation(zsntta):
    """What stands for a value is in capitals, choices are joined by |, repetition is marked."""
    for name, command in runnable():
        page = zsntta(*name.split(), "-h", *(["--all"] if name in SHORT_PAGES else [])).stdout
        assert not re.search(r"<(str|int|float|path|list|Path)|<\w+\||\{\w+\}( |$)", page), name
        repeated = [p.opts[0] for p in command.params if getattr(p, "multiple", False)]
        for option in repeated:
            assert re.search(rf"^ .*{option} .*…(  |$)", page, re.MULTILINE), (name, option)
        assert "marked … may" in page or not repeated, name
        assert not re.search(r"\[default|<?x[<>]=|(--method|--id|--model) TEXT", page), name


def test_ranges_and_defaults_are_words_in_one_order(zsntta):
    assert described("It.  [default: 2; x>=1]") == "It (1 or more). [2]"
    assert described("It.  [default: 3.25; 2<=x<=20]") == "It (2 to 20). [3.25]"
    assert described("It. [0 to 4]  [x>=0]") == "It (0 or more). [0 to 4]"
    assert described("It.  [required]") == "It. [required]"
    assert described("It. [all]") == "It. [all]"
    assert " random detector (0 or\n" in zsntta("simulate", "-h").stdout
