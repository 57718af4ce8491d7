"""`zsntta methods` as a user has it."""

import json
from pathlib import Path

import pytest
from made import OWN_SCRIPT, row

from zsntta_cli.methods import METHODS
from zsntta_cli.settings.options import option_name
from zsntta_cli.simulation.checks import CHECKS

CHEAT = """
class Cheat(Own):
    def push(self, items, learn=True):
        u = items.noise_score - items.noise_score.sum() / max(len(items), 1)
        return Decisions(items.class_index, u > self.options.cut, 1 - u)

METHODS["cheat"] = Cheat
"""


@pytest.fixture
def methods(scripted, monkeypatch):
    """Run `zsntta methods`; lines are wide."""
    monkeypatch.setenv("COLUMNS", "250")
    return lambda *words: scripted("methods", *words)


def test_list_has_a_line_a_method(methods):
    result = methods("list")
    assert (result.exit_code, result.stderr) == (0, "")
    assert methods().stdout == result.stdout
    for name in METHODS:
        assert row(result, name)[0] == name
    assert row(result, "tent")[2] == "live, online; pixels and the encoder"
    assert row(result, "etlt")[2] == "cached, offline"
    assert row(result, "neglabel")[2] == "cached, online; words"
    assert row(result, "tda")[1].startswith("TDA, arXiv 2403.18293: ")
    assert "adand+tda, oodd+oga" in result.stdout.splitlines()[-1]  # how pairs are named


@pytest.mark.parametrize("name", ["adand", "tent", "oodd+tda"])
def test_show_has_every_setting_with_default_and_help(methods, name):
    result = methods("show", name)
    assert (result.exit_code, result.stderr) == (0, "")
    words = {None: "none", True: "true", False: "false"}
    for field in METHODS[name].fields().values():
        _, default, _, about = row(result, option_name(field))
        assert about == field.metadata["about"]
        value = METHODS[name].defaults.get(field.name, field.default)
        is_word = value is None or isinstance(value, bool)
        if not field.metadata["shown"]:
            assert default == (words[value] if is_word else str(value))


def test_check_of_a_script_with_a_method_that_cheats(methods):
    Path("shifts.py").write_text("SHIFT = 0.0\n")
    Path("both.py").write_text(OWN_SCRIPT + CHEAT)
    result = methods("check", "both.py", "--format", "json")
    assert result.exit_code == 1
    rows = json.loads(result.stdout)
    assert {line["method"] for line in rows} == {"own", "cheat"}
    [failed] = [line for line in rows if line["outcome"] == "FAILED"]
    assert (failed["method"], failed["check"]) == ("cheat", "another future")
    assert "item 0: id_score" in failed["evidence"]
    for honest in ("both.py:own", "zs-clip"):
        page = methods("check", honest)
        assert page.exit_code == 0, page.output
        assert [row(page, check)[1] for check in CHECKS] == ["held"] * len(CHECKS)
