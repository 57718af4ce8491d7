"""Each form of report/forms is drawn by every command that takes one, or refused by its name."""

import json
import re

import pytest
from made import TINY

from zsntta_cli.cli import program
from zsntta_cli.report.forms import FORMS

COMMANDS = {
    "simulate": ("simulate", *TINY, "--method", "zs-clip"),
    "paper": ("paper", "10", *TINY),
    "published": ("paper", "10", "--published"),
    "records export": ("records", "export", "out.jsonl"),
    "records list": ("records", "list", "--records", "none"),
    "methods list": ("methods", "list"),
    "datasets list": ("datasets", "list"),
    "encoders list": ("encoders", "list"),
    "cache list": ("cache", "list"),
    "methods show": ("methods", "show", "adand"),
}


def is_json(written):
    try:
        return isinstance(json.loads(written), list)
    except ValueError:
        return False


SIGNS = {
    "table": lambda written: "┏━" in written,
    "markdown": lambda written: "\n| --- |" in written,
    "latex": lambda written: "\\begin{tabular}" in written,
    "html": lambda written: written.startswith("<!doctype html>"),
    "csv": lambda written: re.match("(method|name|folder|encoder|table),", written) is not None,
    "json": is_json,
}


def test_all_commands_that_take_a_form_are_here():
    def with_form(command, path):
        for name, sub in getattr(command, "commands", {}).items():
            yield from with_form(sub, (*path, name))
        if any("--format" in parameter.opts for parameter in command.params):
            yield " ".join(path)

    asked = {" ".join(arguments[:2]) for arguments in COMMANDS.values()}
    asked |= {"methods check"}  # seconds each: tests/cli/test_outputs.py has its forms
    for name in with_form(program(), ()):
        assert any(known.startswith(name) for known in asked), name


@pytest.mark.parametrize("command", COMMANDS)
def test_every_form_is_drawn_or_refused_by_name(cached, command):
    drawn = 0
    forms = FORMS if command == "methods show" else ("latex", "json")
    for form in forms:
        result = cached(*COMMANDS[command], "--format", form)
        if result.exit_code == 2:
            assert f"'{form}'" in result.stderr
        elif result.stdout:  # an export is a file
            assert [name for name, sign in SIGNS.items() if sign(result.stdout)] == [form]
            drawn += 1
    assert drawn == (0 if command.startswith("records") else len(forms))
