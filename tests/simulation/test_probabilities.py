"""Which probabilities a run is judged by: those that its method's line says it has."""

import math

import numpy as np
import pytest
from replayed import grid

from zsntta_cli.methods import BY_SCORE
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


@pytest.mark.parametrize(
    ("method", "of_noise", "of_class"),
    [("cull", False, False), ("tda", True, False), ("adand+oga", True, False),
     ("cull+tda", False, False), ("oodd", False, True), ("energy", False, True)],
)  # fmt: skip
def test_what_is_no_probability_is_judged_as_none(features, method, of_noise, of_class):
    replay = replayed(features, method)
    assert (has(replay, OF_NOISE), has(replay, OF_CLASS)) == (of_noise, of_class)


def test_that_of_an_encoder_which_adapts_is_its_score(features, monkeypatch):
    """As live methods have it."""
    frozen = replayed(features, "zs-clip").record().detection
    monkeypatch.setattr(ZsClip, "class_probability", BY_SCORE)
    by_score = replayed(features, "zs-clip")
    assert by_score.frozen_probability is None
    assert by_score.record().detection.brier_class == pytest.approx(frozen.brier_class)
    assert not has(replayed(features, "zs-clip", score=["match"]), OF_CLASS)
