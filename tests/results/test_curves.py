"""What figures draw of a run, and what of it can be drawn; items."""

import dataclasses

import numpy as np
from replayed import grid

from zsntta_cli.methods.base import Decisions
from zsntta_cli.simulation.replay import Made, curves_of
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.stream import Stream


def test_curves_of_a_stream_by_hand(features):
    replay = Simulator(features).replay(grid(features, ["adand"], ratio=[0.25])[0])
    stream = Stream(np.array([0, 1, 0, 2, 1], np.int8), np.zeros(5, np.int64))  # ID, OOD, ID …
    decisions = Decisions(
        np.array([1, 0, 1, 0, 0], np.int32), np.array([True, True, False, True, False]),
        np.array([0.1, 0.2, 0.9, 0.0, 1.0]), np.array([0.5, 0.5, 0.75, 0.9, 0.5]),
    )  # fmt: skip
    curves = curves_of(dataclasses.replace(
        replay, stream=stream, made=Made(decisions, 0.0), frozen_probability=None
    ))  # fmt: skip
    assert curves["thresholds"] == {"item": [1, 2, 3, 4], "zero_shot": [0.5, 0.5, 0.25, 0.5]}
    assert sum(curves["scores"]["id"]) == sum(curves["scores"]["ood"]) == 2
    assert curves["scores"]["id"][5] == 1, "0.1 of 50 cells"


def test_the_counts_by_class_are_kept_for_few_classes(features, monkeypatch):
    replay = Simulator(features).replay(grid(features, ["adand"], ratio=[0.25])[0])
    judged, names = replay.judged, [*replay.sources.id_set.class_names]
    counts, right = curves_of(replay)["classes"], judged.class_index == judged.labels
    assert counts["names"] == names
    for i in range(len(names)):
        here = judged.labels == i
        expected = here.sum(), right[here].sum(), judged.is_noise[here].sum()
        assert tuple(counts[of][i] for of in ("images", "right", "noise")) == expected
    monkeypatch.setattr("zsntta_cli.simulation.replay.MOST_CLASSES", len(names) - 1)
    assert "classes" not in curves_of(replay)
