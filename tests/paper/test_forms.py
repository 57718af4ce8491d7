"""Each form of report/forms is drawn by the commands that take one."""

import json

import pytest
from made import TINY

from zsntta_cli.report.forms import FORMS

ALL = dict.fromkeys(("methods show adand",), tuple(FORMS))
TWO = dict.fromkeys((
    f"simulate {' '.join(TINY)} --method zs-clip", f"paper 10 {' '.join(TINY)}",
    "paper 10 --published", "methods list", "datasets list", "encoders list", "cache list",
), ("latex", "json"))  # fmt: skip
SIGNS = {
    "table": lambda written: "┏━" in written,
    "markdown": lambda written: "\n| --- |" in written,
    "latex": lambda written: "\\begin{tabular}" in written,
    "html": lambda written: written.startswith("<!doctype html>"),
    "csv": lambda written: written.startswith(("name,", "method,")),
    "json": lambda written: written[0] == "[" and isinstance(json.loads(written), list),
}


@pytest.mark.parametrize("command", [*ALL, *TWO])
def test_each_form_is_drawn_and_no_other(cached, command):
    for form in (ALL | TWO)[command]:
        result = cached(*command.split(), "--format", form)
        assert [name for name, sign in SIGNS.items() if sign(result.stdout)] == [form]
