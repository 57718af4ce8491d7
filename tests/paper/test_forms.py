"""Each form of report/forms is drawn by every command that takes one, or refused by its name."""

import json
import re

import pytest
from made import TINY

from zsntta_cli.cli import program
from zsntta_cli.report.forms import FORMS, Form

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
    for form in FORMS:
        result = cached(*COMMANDS[command], "--format", form)
        if result.exit_code == 2:
            assert f"'{form}'" in result.stderr
        elif result.stdout:  # an export is a file
            assert [name for name, sign in SIGNS.items() if sign(result.stdout)] == [form]
            drawn += 1
    assert drawn == (0 if command.startswith("records") else len(FORMS))


_SHEETS = {
    "published": 2, "simulate": 1, "paper": 1,
    "methods list": 1, "methods show": 2, "datasets list": 1, "encoders list": 1, "cache list": 1,
}  # fmt: skip


def test_a_form_more_is_one_line_and_never_drawn_as_another(cached, monkeypatch):
    monkeypatch.setitem(FORMS, "names", Form(".names", lambda sheets: f"{len(sheets)} sheets\n"))
    for command, words in COMMANDS.items():
        answer = cached(*words, "--format", "names")
        if command == "records export":
            assert (answer.exit_code, "'names'" in answer.stderr) == (2, True)
        elif command != "records list":  # of no store
            assert answer.stdout == f"{_SHEETS[command]} sheets\n", answer.stderr
