"""Which probabilities a run is judged by: those that its method's line says it has."""

import math

import numpy as np
import pytest
from made import own_method
from replayed import grid

from zsntta_cli.methods import BY_SCORE, METHODS
from zsntta_cli.methods.detectors.zs_clip import ZsClip
from zsntta_cli.simulation.simulator import Simulator

OF_NOISE, OF_CLASS = ("ece_noise", "brier_noise"), ("ece_class", "brier_class")


def replayed(features, method, **values):
    [run] = grid(features, [method], **values)
    return Simulator(features).replay(run)


def has(replay, names):
    measured = [not math.isnan(replay.record().detection[name]) for name in names]
    assert len(set(measured)) == 1
    return measured[0]


def test_the_frozen_model_has_both(features):
    replay = replayed(features, "zs-clip")
    judged, detection = replay.judged, replay.record().detection
    is_id, mcm = judged.labels >= 0, judged.id_score
    assert detection.brier_noise == pytest.approx(np.mean((1 - mcm - ~is_id) ** 2))
    is_named = judged.class_index[is_id] == judged.labels[is_id]
    assert detection.brier_class == pytest.approx(np.mean((mcm[is_id] - is_named) ** 2))


def test_a_detector_has_its_own_of_noise_and_the_frozen_models_of_classes(features):
    frozen = replayed(features, "zs-clip")
    adand = replayed(features, "adand", warmup=[1], update_every=[32], noise=["none"])
    assert not np.array_equal(frozen.judged.id_score, adand.judged.id_score)
    first, second = frozen.record().detection, adand.record().detection
    assert first.brier_noise != second.brier_noise
    assert first.brier_class == second.brier_class


@pytest.mark.parametrize(
    ("method", "of_noise", "of_class"),
    [("cull", False, False), ("tda", True, False), ("adand+oga", True, False),
     ("cull+tda", False, False), ("oodd", False, True), ("energy", False, True)],
)  # fmt: skip
def test_what_is_no_probability_is_judged_as_none(features, method, of_noise, of_class):
    replay = replayed(features, method)
    assert (has(replay, OF_NOISE), has(replay, OF_CLASS)) == (of_noise, of_class)


def test_a_score_by_the_best_match_is_no_probability(features):
    replay = replayed(features, "zs-clip", score=["match"])
    assert (has(replay, OF_NOISE), has(replay, OF_CLASS)) == (False, True)


def test_that_of_an_encoder_which_adapts_is_its_score(features, monkeypatch):
    """As live methods have it."""
    frozen = replayed(features, "zs-clip").record().detection
    monkeypatch.setattr(ZsClip, "class_probability", BY_SCORE)
    by_score = replayed(features, "zs-clip")
    assert by_score.frozen_probability is None
    assert by_score.record().detection.brier_class == pytest.approx(frozen.brier_class)
    assert not has(replayed(features, "zs-clip", score=["match"]), OF_CLASS)


def test_a_method_of_ones_own_has_none_unless_it_says_so(features, monkeypatch):
    mine = own_method(lambda data, *given: ZsClip(data, *given).push(data), ZsClip.Settings)
    monkeypatch.setitem(METHODS, "mine", mine)
    replay = replayed(features, "mine")
    assert (has(replay, OF_NOISE), has(replay, OF_CLASS)) == (False, False)
