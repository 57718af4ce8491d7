"""Runs of methods: the probabilities they are judged by, and own ones that misbehave."""

import math
import sys

import numpy as np
import pytest
from made import own_method
from replayed import grid

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import BY_SCORE, METHODS
from zsntta_cli.methods.detectors.zs_clip import ZsClip
from zsntta_cli.simulation.simulator import Simulator

OF_NOISE, OF_CLASS = ("ece_noise", "brier_noise"), ("ece_class", "brier_class")


def replayed(features, method, **values):
    [run] = grid(features, [method], **values)
    return Simulator(features).replay(run)


def judged_by(replay):
    """The metrics of probabilities that a run has."""
    measured = replay.record().detection
    return tuple(name for name in OF_NOISE + OF_CLASS if not math.isnan(measured[name]))


def test_the_frozen_model_has_both_probabilities(features):
    replay = replayed(features, "zs-clip")
    judged, measured = replay.judged, replay.record().detection
    is_id, mcm = judged.labels >= 0, judged.id_score
    assert measured.brier_noise == pytest.approx(np.mean((1 - mcm - ~is_id) ** 2))
    is_named = judged.class_index[is_id] == judged.labels[is_id]
    assert measured.brier_class == pytest.approx(np.mean((mcm[is_id] - is_named) ** 2))


@pytest.mark.parametrize(
    ("method", "probabilities"),
    [("cull", ()), ("tda", OF_NOISE), ("adand+oga", OF_NOISE), ("cull+tda", ()),
     ("oodd", OF_CLASS), ("energy", OF_CLASS)],
)  # fmt: skip
def test_what_is_no_probability_is_judged_as_none(features, method, probabilities):
    assert judged_by(replayed(features, method)) == probabilities


def test_that_of_an_encoder_which_adapts_is_its_score(features, monkeypatch):
    """As live methods have it."""
    frozen = replayed(features, "zs-clip").record().detection
    monkeypatch.setattr(ZsClip, "class_probability", BY_SCORE)
    by_score = replayed(features, "zs-clip")
    assert by_score.frozen_probability is None
    assert by_score.record().detection.brier_class == pytest.approx(frozen.brier_class)
    assert judged_by(replayed(features, "zs-clip", score=["match"])) == ()


def run_own(features, monkeypatch, spoil):
    """Run ZS-CLIP as a method of one's own, with its decisions spoilt."""

    def decide(data, *given):
        decisions = ZsClip(data, *given).push(data)
        spoil(decisions)
        return decisions

    monkeypatch.setitem(METHODS, "mine", own_method(decide, ZsClip.Settings))
    return replayed(features, "mine")


def test_what_a_method_prints_is_no_result(features, monkeypatch, capsys):
    replay = run_own(features, monkeypatch, lambda _: print("a word"))
    assert len(replay.made.decisions.class_index) == len(replay.stream)
    assert capsys.readouterr() == ("", "a word\n")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda _: sys.exit(0), r"mine ends the program with sys.exit\(0\)"),
        (lambda _: sys.exit("done"), r"mine ends the program with sys.exit\('done'\)"),
        (lambda decided: decided.id_score.put(7, np.nan), "mine returns id_score nan at item 7"),
    ],
)
def test_a_method_that_ends_the_program_or_scores_by_no_number_is_one_line(
    features, monkeypatch, spoil, said
):
    with pytest.raises(SettingsError, match=said):
        run_own(features, monkeypatch, spoil)
