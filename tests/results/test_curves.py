"""What figures draw of a run, and what of it can be drawn; items."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replayed import grid

from zsntta_cli.results.curves import (
    BINS,
    accuracy_curves,
    curves_of,
    histogram,
)
from zsntta_cli.simulation.metrics import Judged
from zsntta_cli.simulation.simulator import Simulator


def test_curves_of_a_stream_by_hand(features):
    replay = Simulator(features).replay(grid(features, ["adand"], ratio=[0.25])[0])
    small = dataclasses.replace(
        replay, stream=stream_of("IOIXO"), decisions=decided(), frozen_probability=None
    )
    curves = curves_of(small)
    assert curves["windows"]["item"] == [1, 2, 3, 4]
    assert curves["windows"]["acc_n"] == [None, 1.0, None, 0.0]
    assert curves["running"]["item"] == [1, 2, 3, 4]
    right = small.labels[[0, 2]] == 1
    assert curves["running"]["acc_n"] == [None, 1.0, 1.0, 0.5]
    assert curves["running"]["acc_s"] == [0.0, 0.0, pytest.approx(right[1] / 2), right[1] / 2]
    assert curves["thresholds"] == {"item": [1, 2, 3, 4], "zero_shot": [0.5, 0.5, 0.25, 0.5]}
    assert sum(curves["scores"]["id"]) == sum(curves["scores"]["ood"]) == 2
    assert curves["scores"]["id"][5] == 1, "0.1 of 50 cells"


def stream_of(kinds):
    from zsntta_cli.simulation.stream import Stream

    return Stream(np.array(["IOX".index(k) for k in kinds], np.int8), np.zeros(5, np.int64))


def decided():
    from zsntta_cli.methods.base import Decisions

    return Decisions(
        np.array([1, 0, 1, 0, 0], np.int32), np.array([True, True, False, True, False]),
        np.array([0.1, 0.2, 0.9, 0.0, 1.0]), np.array([0.5, 0.5, 0.75, 0.9, 0.5]),
    )  # fmt: skip


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_windows_are_the_accuracies_of_parts_of_the_stream(items):
    is_id, is_right = (np.array(column) for column in zip(*items, strict=True))
    labels = np.where(is_id, 0, -1)
    judged = Judged(labels, np.zeros_like(labels), is_right != is_id, np.zeros(len(labels)))
    windows = accuracy_curves(judged)["windows"]
    ends = windows["item"]
    assert len(ends) == min(12, len(items))
    assert ends[-1] == len(items)
    assert max(np.diff([0, *ends])) - min(np.diff([0, *ends])) <= 1
    for i, (start, stop) in enumerate(itertools.pairwise([0, *ends])):
        for name, kind in (("acc_s", is_id), ("acc_n", ~is_id)):
            part = is_right[start:stop][kind[start:stop]]
            expected = None if not len(part) else pytest.approx(part.mean(), abs=1e-6)
            assert windows[name][i] == expected


FLAT = {"item": [1, 2], "acc_s": [0.5, None], "acc_n": [None, 1]}
SCORES = {"low": 0, "high": 1.0, "id": [1, 2], "ood": [0, 3]}


def test_a_histogram_of_scores_beyond_0_and_1_has_their_range():
    found = histogram(np.array([-3.0, 7.0, 2.0]), np.array([True, False, False]))
    assert (found["low"], found["high"]) == (-3, 7)
    assert found["id"][0] == found["ood"][BINS - 1] == found["ood"][BINS // 2] == 1
    equal = histogram(np.full(4, 30.0), np.ones(4, bool))
    assert sum(equal["id"]) == 4
    assert sum(histogram(np.empty(0), np.ones(0, bool))["id"]) == 0
