"""`zsntta methods` and `zsntta cite` as a user has them."""

import json
from pathlib import Path

import pytest
from made import row

from zsntta_cli.methods import METHODS
from zsntta_cli.settings.options import option_name
from zsntta_cli.simulation.checks import CHECKS

HONEST = '''
"""Frozen CLIP under another name."""
from dataclasses import dataclass
from zsntta_cli.methods import METHODS, Method
from zsntta_cli.methods.detectors import zs_clip
from zsntta_cli.methods.detectors.zs_clip import ZsClip


@dataclass(frozen=True)
class PlainSettings(ZsClip.Settings):
    """Decides as zs-clip does."""


class Plain(zs_clip.ZsClip):
    """Decides as zs-clip does."""

    Settings = PlainSettings


METHODS["plain"] = Plain
'''
CHEAT = (
    HONEST
    + """
import dataclasses

class Cheat(Plain):
    def push(self, items, learn=True):
        decisions = super().push(items, learn)
        scores = decisions.id_score
        return dataclasses.replace(decisions, id_score=scores - scores.sum() / max(len(scores), 1))

METHODS["cheat"] = Cheat
"""
)


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
    defaults = METHODS[name].defaults
    for field in METHODS[name].fields().values():
        _, default, _, about = row(result, option_name(field))
        assert about == field.metadata["about"]
        value = defaults.get(field.name, field.default)
        words = {None: "none", True: "true", False: "false"}
        is_word = value is None or isinstance(value, bool)
        if not field.metadata["shown"]:
            assert default == (words[value] if is_word else str(value))


def test_check_says_on_a_page_what_held(methods):
    result = methods("check", "zs-clip")
    assert result.exit_code == 0, result.output
    for check in CHECKS:
        assert row(result, check)[1] == "held"
    assert len(result.stdout.splitlines()) < 40


def test_check_of_a_script_with_a_method_that_cheats(methods):
    Path("both.py").write_text(CHEAT)
    result = methods("check", "both.py", "--format", "json")
    assert result.exit_code == 1
    rows = json.loads(result.stdout)
    assert {line["method"] for line in rows} == {"plain", "cheat"}
    [failed] = [line for line in rows if line["outcome"] == "FAILED"]
    assert (failed["method"], failed["check"]) == ("cheat", "another future")
    assert "item 0: id_score" in failed["evidence"]
    only = methods("check", "both.py:plain")
    assert only.exit_code == 0, only.output
    assert row(only, "two runs")[1] == "held"


def test_cite_all_kept_runs_and_those_of_a_file(simulate, zsntta, tmp_path):
    simulate("--method", "oodd", "--method", "adand", "--id", "pets", "--ood", "sky")
    kept = ("--records", tmp_path / "kept.sqlite")
    result = zsntta("cite", *kept)
    assert result.exit_code == 0, result.output
    assert "% oodd\n@inproceedings{yang2025oodd," in result.stdout
    assert result.stderr == "note: no reference is known for pets, sky.\n"
    zsntta("records", "export", *kept, "--output", "runs.jsonl")
    assert zsntta("cite", "--from", "runs.jsonl").stdout == result.stdout
