"""A process that calls the command again and again: the search for cycles is as it was before."""

import gc
import sys

import pytest

from zsntta_cli import garbage
from zsntta_cli.__main__ import main

LINES = {
    "a list": ("methods", "list"),
    "the help": ("--help",),
    "wrong usage": ("simulate", "--no-such-option"),
    "an error": ("report", "none.json"),
}


@pytest.fixture(autouse=True)
def _as_before():
    """Nothing is frozen, as conftest.py has it; whatever a test leaves, no other one meets it."""
    thresholds = gc.get_threshold()
    gc.unfreeze()
    yield
    gc.set_threshold(*thresholds)
    gc.freeze()
    gc.enable()


def state():
    return gc.isenabled(), gc.get_freeze_count(), gc.get_threshold()


def call(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["zsntta", *words])
    with pytest.raises(SystemExit):
        main()


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("is_on", [True, False])
def test_a_command_leaves_the_search_as_it_was(monkeypatch, tmp_path, capsys, line, is_on):
    monkeypatch.chdir(tmp_path)
    (gc.enable if is_on else gc.disable)()
    before = state()
    for _ in range(2):
        call(monkeypatch, *LINES[line])
    assert state() == before
    assert "Traceback" not in capsys.readouterr().err


def test_what_the_caller_has_frozen_stays_so(monkeypatch, capsys):
    """But for what goes by itself, which is counted no more."""
    gc.freeze()
    count = gc.get_freeze_count()
    call(monkeypatch, "methods", "list")
    assert 0.9 * count < gc.get_freeze_count() <= count
    assert capsys.readouterr().err == ""


def test_a_command_searches_seldom_and_not_in_what_was_imported():
    with garbage.held_back():
        assert not gc.isenabled()
        garbage.search_seldom()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold()[0] == garbage._SELDOM
    assert gc.get_freeze_count() == 0


def test_the_app_alone_changes_nothing(zsntta):
    """Whoever calls it has their own reasons to have switched the search off."""
    gc.disable()
    before = state()
    assert zsntta("methods", "list").exit_code == 0
    assert state() == before


def test_a_process_of_many_commands_keeps_no_garbage(monkeypatch, capsys):
    """Cycles that a command leaves are found, as without it."""
    call(monkeypatch, "methods", "list")
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(5):
        call(monkeypatch, "methods", "list")
    gc.collect()
    assert len(gc.get_objects()) - before < 2000
    assert capsys.readouterr().err == ""
