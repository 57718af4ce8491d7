"""Verdicts by hand: many as arrays, one as plain values."""

import dataclasses
import json
import sys

import numpy as np
import pytest
from small_detectors import detector, world

from zsntta_cli import Verdict, Verdicts
from zsntta_cli.detection.verdicts import FIELDS
from zsntta_cli.errors import SettingsError

MANY = Verdicts(
    class_names=("cat", "dog"),
    class_index=np.array([1, 0, 0], np.int32),
    noise=np.array([False, False, True]),
    unsure=np.array([True, False, False]),
    score=np.array([0.75, 0.25, 3.0]),
    threshold=np.array([0.5, 0.5, 1.0]),
    adapted=np.array([False, False, True]),
    top_index=np.array([[1, 0], [0, 1], [0, 1]], np.int32),
    top_score=np.array([[0.7, 0.3], [0.6, 0.4], [0.9, 0.1]]),
    evidence=np.array([4.25, np.nan, 1.75]),
    level=np.array([2.0, np.nan, 2.0]),
    sure=np.array([False, False, True]),
    judged=np.array([False, False, False]),
    sources=("a.jpg", None, "c.jpg"),
)
FIRST = Verdict(
    "a.jpg", "dog", 1, "unsure", 0.75, 0.5, "warm-up", 4.25, 2.0, (("dog", 0.7), ("cat", 0.3))
)


def test_one_is_plain_values():
    assert MANY[0] == FIRST
    assert MANY[-3] == FIRST
    assert next(iter(MANY)) == FIRST
    assert FIRST.margin == 0.25
    assert [type(getattr(FIRST, field.name)) for field in dataclasses.fields(FIRST)] == [
        str, str, int, str, bool, float, float, float, str, float, float, tuple,
    ]  # fmt: skip
    with pytest.raises(IndexError):
        MANY[3]


def test_one_as_a_mapping_has_all_that_is_said():
    said = dataclasses.asdict(FIRST)
    assert (said["noise"], said["margin"]) == (False, 0.25)
    assert json.loads(json.dumps(said))["top"] == [["dog", 0.7], ["cat", 0.3]]
    moved = dataclasses.replace(FIRST, score=2.0, answer="noise")
    assert (moved.noise, moved.margin) == (True, 1.5)


def test_a_table_has_the_columns_of_verdict_files():
    pd = pytest.importorskip("pandas")
    table = MANY.to_pandas()
    columns = [name for name in FIELDS if name in table]
    assert list(table) == columns
    assert not {*FIELDS} - {*table} - {
        "format", "content", "note", "error", "encoder",
    }  # fmt: skip
    assert table["source"].tolist() == ["a.jpg", None, "c.jpg"]
    assert table["class"].tolist() == ["dog", "cat", "cat"]
    assert table["answer"].tolist() == ["unsure", "clean", "noise"]
    assert table["rank"].tolist() == [2, 3, 1]
    assert table["margin"].tolist() == [0.25, -0.25, 2.0]
    assert table["level"].tolist()[::2] == [2, 2]
    assert table["evidence"].isna().tolist() == [False, True, False]
    assert table["top"][2] == [{"class": "cat", "score": 0.9}, {"class": "dog", "score": 0.1}]
    assert table.sort_values("rank")["source"].tolist() == ["c.jpg", "a.jpg", None]
    assert (MANY[:0].to_pandas().dtypes == table.dtypes).all()
    assert dataclasses.replace(MANY, sources=()).to_pandas()["source"].isna().all()
    assert isinstance(table, pd.DataFrame)


def test_without_pandas_a_table_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SettingsError, match="to_pandas needs pandas: pip install pandas"):
        MANY.to_pandas()


def test_some_are_verdicts_too():
    for some in (MANY[1:], MANY[np.array([1, 2])], MANY[np.array([False, True, True])]):
        assert [v.source for v in some] == [None, "c.jpg"]
        assert some.score.tolist() == [0.25, 3.0]
        assert list(some) == list(MANY)[1:]
    assert len(MANY[:0]) == 0


def test_what_many_say_is_what_each_says():
    assert MANY.margin.tolist() == [0.25, -0.25, 2.0]
    assert MANY.rank.tolist() == [2, 3, 1]
    assert MANY.stage == ["warm-up", "warm-up", "adapted"]
    assert MANY.flagged.tolist() == [True, False, True]
    assert MANY.answer == [v.answer for v in MANY] == ["unsure", "clean", "noise"]
    assert [v.noise for v in MANY] == [False, False, True]
    assert [(v.evidence, v.level) for v in MANY] == [(4.25, 2), (None, None), (1.75, 2)]


def test_what_a_person_said_stands_and_scores_stay():
    judged = MANY.as_judged({0: False, 1: True})
    assert judged.answer == ["clean", "noise", "noise"]
    assert judged.stage == ["judged", "judged", "adapted"]
    assert judged.margin.tolist() == MANY.margin.tolist()
    assert MANY.answer == ["unsure", "clean", "noise"]


def test_numbers_are_those_that_people_read_and_still_say_which_is_above():
    def verdict(score, threshold):
        return Verdict(None, "cat", 0, "noise", score, threshold, "adapted", None, None, ())

    assert verdict(0.03, 0.02).margin == 0.01
    assert verdict(0.3 + 1e-14, 0.3).margin > 0
    for one in detector().decide_all(world()[1]):
        row = one.as_row(1)
        assert all(len(repr(row[name])) < 18 for name in ("score", "threshold", "margin"))
        assert (row["score"] > row["threshold"]) == (row["answer"] != "clean")
