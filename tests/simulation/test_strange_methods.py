"""A method of one's own that prints, that ends the program, or that returns what is no decision."""

import sys

import numpy as np
import pytest
from made import own_method
from replayed import grid

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.detectors.zs_clip import ZsClip
from zsntta_cli.simulation.simulator import Simulator


def replayed(features, monkeypatch, decide):
    monkeypatch.setitem(METHODS, "mine", own_method(decide, ZsClip.Settings))
    [run] = grid(features, ["mine"])
    return Simulator(features).replay(run)


def frozen(data, *given):
    return ZsClip(data, *given).push(data)


def test_what_a_method_prints_is_no_result(features, monkeypatch, capsys):
    def loud(*given):
        print("a word")
        return frozen(*given)

    replay = replayed(features, monkeypatch, loud)
    assert len(replay.made.decisions.class_index) == len(replay.stream)
    assert capsys.readouterr() == ("", "a word\n")


@pytest.mark.parametrize("code", [0, 3, "done"])
def test_a_method_that_ends_the_program_is_one_line(features, monkeypatch, code):
    def ends(*given):
        sys.exit(code)

    with pytest.raises(SettingsError, match=rf"mine ends the program with sys.exit\({code!r}\)"):
        replayed(features, monkeypatch, ends)


def test_a_score_that_is_no_number_is_one_line(features, monkeypatch):
    def nameless(*given):
        decisions = frozen(*given)
        decisions.id_score[7] = np.nan
        return decisions

    with pytest.raises(SettingsError, match="mine returns id_score nan at item 7"):
        replayed(features, monkeypatch, nameless)
