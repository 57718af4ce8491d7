"""Verdicts by hand: columns, rows, flags."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import refused
from small_detectors import detector, world

from zsntta_cli.detection.verdicts import FIELDS, Verdicts, parsed_flag
from zsntta_cli.errors import SettingsError

MANY = Verdicts(
    names=("cat", "dog"),
    class_index=np.array([1, 0, 0], np.int32),
    answer=np.array(["unsure", "clean", "noise"]),
    score=np.array([0.75, 0.25, 3.0]),
    threshold=np.array([0.5, 0.5, 1.0]),
    stage=np.array(["warm-up", "warm-up", "adapted"]),
    evidence=np.array([4.25, np.nan, 1.75]),
    level=np.array([2.0, np.nan, 2.0]),
    sure=np.array([False, False, True]),
    top_index=np.array([[1, 0], [0, 1], [0, 1]], np.int32),
    top_score=np.array([[0.7, 0.3], [0.6, 0.4], [0.9, 0.1]]),
)


def test_rows_are_plain_values():
    first, second, _ = MANY.rows()
    assert json.loads(json.dumps(first)) == first == {
        "class": "dog", "class_index": 1, "answer": "unsure", "noise": False, "rank": 2,
        "score": 0.75, "threshold": 0.5, "margin": 0.25, "stage": "warm-up", "evidence": 4.25,
        "level": 2.0, "top": [{"class": "dog", "score": 0.7}, {"class": "cat", "score": 0.3}],
    }  # fmt: skip
    assert (second["evidence"], second["level"]) == (None, None)
    assert (MANY.noise | MANY.unsure).tolist() == MANY.flagged.tolist() == [True, False, True]
    assert tuple(first) == FIELDS[2:14]


def test_ranks_are_by_the_margin_or_by_the_evidence_where_most_are_noise_by_it():
    assert MANY.rank.tolist() == [2, 3, 1]
    few = replace(MANY, evidence=np.array([1.0, 5.0, 1.5]), level=np.full(3, 2.0))
    assert few.rank.tolist() == [1, 3, 2]
    assert few.with_flag(1).rank.tolist() == [2, 3, 1], "a flag is by the margin"


def test_numbers_are_those_that_people_read_and_still_say_which_is_above():
    near = replace(MANY, score=np.array([0.03, 0.3 + 1e-14, 1]), threshold=np.array([0.02, 0.3, 2]))
    assert near.rows()[0]["margin"] == 0.01
    assert near.rows()[1]["margin"] > 0
    for row in detector().decide_all(world()[1]).rows():
        assert all(len(repr(row[name])) < 18 for name in ("score", "threshold", "margin"))
        assert (row["score"] > row["threshold"]) == (row["answer"] != "clean")


def with_margins(*margins):
    count = len(margins)
    return Verdicts(
        ("cat",), np.zeros(count, np.int32), np.full(count, "unsure"),
        0.5 + np.array(margins, float), np.full(count, 0.5), np.full(count, "adapted"),
        np.full(count, np.nan), np.full(count, np.nan), np.ones(count, bool),
        np.zeros((count, 1), np.int32), np.ones((count, 1)),
    )  # fmt: skip


def test_a_flag_moves_all_thresholds_by_one_amount():
    some = with_margins(0.3, -0.1, 0.1, -0.4)
    assert some.with_flag(None) is some
    three = some.with_flag(3)
    assert three.noise.tolist() == [True, True, True, False]
    assert not three.unsure.any()
    np.testing.assert_allclose(three.threshold, 0.5 - 0.25)  # half-way from -0.1 to -0.4
    assert three.rank.tolist() == some.rank.tolist() == [1, 3, 2, 4]
    assert with_margins(0.1, 0.1, 0.1).with_flag(2).noise.tolist() == [True, True, False]
    assert len(with_margins().with_flag(5)) == 0
    for flag, count in ((1, 1), (9, 4), (0.5, 2), (0.25, 1), (0.01, 1)):  # one at least
        verdicts = some.with_flag(flag)
        assert verdicts.noise.sum() == count
        np.testing.assert_array_equal(verdicts.noise, verdicts.margin > 0)


@given(count=st.integers(1, 40), percent=st.floats(0.01, 99.99))
def test_a_share_of_few_images_is_the_nearest_number_and_at_least_one(count, percent):
    wanted = with_margins(*range(count)).with_flag(percent / 100).noise.sum()
    assert wanted == 1 or abs(wanted - percent / 100 * count) <= 0.5 + 1e-9


@pytest.mark.parametrize(
    ("typed", "flag"),
    [("5%", 0.05), (" 0.5 % ", 0.005), (0.05, 0.05), (np.float32(0.5), 0.5), ("50", 50), (50, 50),
     (np.int64(1), 1), (None, None)],
)  # fmt: skip
def test_flags_as_they_are_typed_or_a_program_has_them(typed, flag):
    assert parsed_flag(typed) == flag


TYPED = ("", "0", "0%", "100%", "-1", "5.5", "x", "fpr=1%", "1e3", "٣%", "5%%")


@pytest.mark.parametrize("value", [*TYPED, True, False, 0, -3, 0.0, 1.0, 5.0, float("nan"), [5]])
def test_other_flags_are_refused(value):
    with refused("flag is ", "must be a share (5%) or a number", error=SettingsError):
        parsed_flag(value)
