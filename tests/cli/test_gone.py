"""What was taken out is answered in one line that names its replacement, which is there."""

import re

import pytest
import typer.main
from made import TINY

from zsntta_cli.cli import app
from zsntta_cli.cli.line.gone import GONE

# What has to be typed where a name alone is no line: values in the form in which they were given.
SIMULATE = ("simulate", "--method", "zs-clip", *TINY)
EXTRACT = ("extract", "--dataset", "shapes", "--model", "tiny")
TYPED = {
    "simulate --order separate": (*SIMULATE, "--order", "separate"),
    "simulate --order shuffled-blocks": (*SIMULATE, "--order", "shuffled-blocks"),
    "simulate --order note": (*SIMULATE, "--order", "note:D"),
    "simulate --order classes": (*SIMULATE, "--order", "classes:0-3"),
    "simulate --ratio steps": (*SIMULATE, "--ratio", "steps:0.1,0.5"),
    "simulate --ratio ..": (*SIMULATE, "--ratio", "0.1..0.7"),
    "detect --flag fpr=": ("detect", "photos", "--classes", "cat", "--flag", "fpr=1%"),
    "extract --part auto": (*EXTRACT, "--part", "auto"),
    "extract --engine submitit": (*EXTRACT, "--engine", "submitit"),
}


def command(words):
    """The command that some words begin with, and the words behind it."""
    found, rest = typer.main.get_command(app), list(words)
    while rest and rest[0] in getattr(found, "commands", {}):
        found = found.commands[rest.pop(0)]
    return found, rest


def options(of):
    of_methods = of.further_params(["--method", "all"]) if hasattr(of, "further_params") else []
    return {
        option
        for parameter in (*of.params, *of_methods)
        for option in (*parameter.opts, *parameter.secondary_opts)
    }


def is_there(words):
    of, rest = command(words)
    return not rest or (len(rest) == 1 and rest[0] in options(of))


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone_names_its_replacement(zsntta, name):
    assert not is_there(name.split())
    typed = TYPED.get(name, name.split())
    lines = [typed] if name in TYPED or typed[-1][0] != "-" else [
        typed, [*typed, "3"], [*typed[:-1], f"{typed[-1]}=3"],
    ]  # fmt: skip
    for line in lines:
        answer = zsntta(*line)
        assert answer.exit_code == 2, answer.output
        assert answer.stdout == ""
        assert answer.stderr.startswith(f"error: zsntta {name} is gone: {GONE[name]}")
        assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize(("name", "replacement"), GONE.items(), ids=GONE)
def test_replacements_are_there(name, replacement):
    """Options that stand before a command are those of the command that has lost one."""
    own, *others = re.split(r"\bzsntta ", replacement)
    for text, words in [(own, name.split()), *((other, other.split()) for other in others)]:
        of, rest = command(words)
        assert words is not rest
        if words != name.split():
            assert len(rest) < len(words), text
        for option in re.findall(r"(?<!\w)--?[\w-]+", text):
            assert option in options(of), option
