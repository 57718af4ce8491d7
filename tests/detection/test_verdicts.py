"""Verdicts by hand: many as arrays, one as plain values."""

import numpy as np
import pytest

from zsntta_cli import Verdict, Verdicts

MANY = Verdicts(
    class_names=("cat", "dog"),
    class_index=np.array([1, 0, 0], np.int32),
    noise=np.array([True, False, True]),
    score=np.array([0.75, 0.25, 3.0]),
    threshold=np.array([0.5, 0.5, 1.0]),
    adapted=np.array([False, False, True]),
    top_index=np.array([[1, 0], [0, 1], [0, 1]], np.int32),
    top_score=np.array([[0.7, 0.3], [0.6, 0.4], [0.9, 0.1]]),
    sources=("a.jpg", None, "c.jpg"),
)
FIRST = Verdict("a.jpg", "dog", 1, True, 0.75, 0.5, "warm-up", (("dog", 0.7), ("cat", 0.3)))


def test_one_is_plain_values():
    assert MANY[0] == FIRST
    assert MANY[-3] == FIRST
    assert next(iter(MANY)) == FIRST
    assert FIRST.margin == 0.25
    assert [type(value) for value in vars(FIRST).values()] == [
        str, str, int, bool, float, float, str, tuple,
    ]  # fmt: skip
    with pytest.raises(IndexError):
        MANY[3]


def test_some_are_verdicts_too():
    for some in (MANY[1:], MANY[np.array([1, 2])], MANY[np.array([False, True, True])]):
        assert [v.source for v in some] == [None, "c.jpg"]
        assert some.score.tolist() == [0.25, 3.0]
        assert list(some) == list(MANY)[1:]
    assert len(MANY[:0]) == 0


def test_margin_rank_and_stage():
    assert MANY.margin.tolist() == [0.25, -0.25, 2.0]
    assert MANY.rank.tolist() == [2, 3, 1]
    assert MANY.stage == ["warm-up", "warm-up", "adapted"]
    assert [v.noise for v in sorted(MANY, key=lambda v: -v.margin)] == [True, True, False]
