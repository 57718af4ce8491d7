"""Means over seeds, averages over sets, and which is the best: by hand, and against SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from zsntta_cli.results import frame
from zsntta_cli.results.frame import BEST, CLOSE, LEVEL, fold, holm, marks, paired_t_test
from zsntta_cli.simulation.metrics import METRICS

ACC_H = METRICS["acc_h"]


def values_of(rows):
    """Values in percent, by seed, of some rows."""
    return [fold({seed: value / 100 for seed, value in enumerate(row)}) for row in rows]


def test_a_mean_by_hand():
    assert fold({}) == frame.NOTHING
    assert not frame.NOTHING.is_whole
    one, three = fold({3: 0.4}), fold({3: 0.4, 1: 0.8, 2: 0.6})
    assert (one.mean, one.by_seed, one.is_whole, one.lacks) == (0.4, {3: 0.4}, True, "")
    assert math.isnan(one.std)
    # Two values of three are 0.2 from their mean: the sample variance is 2 · 0.04 / 2.
    assert (three.mean, three.std) == (pytest.approx(0.6), pytest.approx(0.2))


def test_an_average_is_over_the_seeds_that_all_sets_have_by_hand():
    value = frame.average({"a": {0: 0.2, 1: 0.4, 2: 0.9}, "b": {1: 0.8, 0: 0.4}})
    assert (value.mean, value.by_seed) == (pytest.approx(0.45), pytest.approx({0: 0.3, 1: 0.6}))
    assert value.std == pytest.approx(math.sqrt(2) * 0.15)
    # Their ± over sets, as in the paper, is the mean of the deviations of the sets.
    opposed = {"a": {0: 0.2, 1: 0.4}, "b": {0: 0.4, 1: 0.2}}
    assert frame.average(opposed).std == pytest.approx(0)
    assert frame.average(opposed, "sets").std == pytest.approx(math.sqrt(2) * 0.1)


@pytest.mark.parametrize(
    ("by_set", "lacks"),
    [({}, "0 of 0 sets"), ({"a": {}}, "0 of 1 sets"), ({"a": {}, "b": {0: 1.0}}, "1 of 2 sets (b)"),
     ({"a": {0: 1.0}, "b": {}, "c": {0: 1.0}}, "2 of 3 sets (a, c)"),
     ({"a": {0: 1.0}, "b": {1: 1.0}}, "no seed that all of its sets share")],
)  # fmt: skip
def test_without_an_average_it_says_what_lacks(by_set, lacks):
    value = frame.average(by_set)
    assert math.isnan(value.mean)
    assert (value.is_whole, value.lacks) == (False, lacks)


@pytest.mark.parametrize("seeds", [5, 6, 20])
def test_the_t_test_is_scipys_over_the_seeds_that_both_have(seeds):
    first, second = np.random.default_rng(seeds).normal(60, 1, (2, seeds + 2))
    ours = dict(enumerate(first[:-1]))
    theirs = {s: value for s, value in enumerate(second) if s}
    expected = ttest_rel(first[1:-1], second[1:-1]).pvalue
    assert paired_t_test(ours, theirs) == pytest.approx(expected)
    assert paired_t_test(theirs, ours) == pytest.approx(expected)


def test_differences_that_do_not_vary_are_a_difference_or_none():
    same = {s: 0.6 + 0.01 * s for s in range(5)}
    assert paired_t_test(same, same) == 1.0
    assert paired_t_test(same, {s: v - 0.001 for s, v in same.items()}) == 0.0


def test_holm_by_hand():
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": None, "e": 0.9, "f": 0.8})
    assert adjusted == {"a": 0.05, "b": 0.12, "c": 0.12, "d": None, "e": 1, "f": 1}


def test_a_row_is_close_unless_the_test_finds_a_difference_down_to_the_first_that_differs():
    best, near, far = (61, 62, 64, 63, 63), (60, 62, 61, 63, 60), (50, 52, 51, 53, 50)
    wild = (80, 10, 57, 79, 20)
    p_values = [2 * ttest_rel(row, best).pvalue for row in (near, far, wild)]
    assert p_values[1] < LEVEL < min(p_values[0], p_values[2])
    assert marks(values_of([best, near]), ACC_H) == [BEST, CLOSE]
    assert marks(values_of([best, near, far]), ACC_H) == [BEST, CLOSE, ""]
    assert marks(values_of([best, near, far, wild]), ACC_H) == [BEST, CLOSE, "", ""]
    assert marks(values_of([near, far]), METRICS["fpr95"]) == ["", BEST]
    assert marks(values_of([best, best, far]), ACC_H) == [BEST, BEST, ""], "equal means share it"
    assert marks(values_of([best]), ACC_H) == [""], "one row is the best of nothing"


def test_a_row_that_is_not_whole_or_that_nothing_ranks_has_no_mark():
    above, low, lower = values_of([(90, 91), (60, 61), (50, 51)])
    stopped = above._replace(is_whole=False)
    assert marks([stopped, low, lower, frame.NOTHING], ACC_H) == ["", BEST, "", ""]
    assert marks([above, low], METRICS["flagged"]) == ["", ""]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("ratio", 0.5, "50%"), ("ratio", 0.125, "0.125"), ("ratio", "natural", "natural"),
     ("fixed", None, "adaptive"), ("fixed", 0.5, "0.5"), ("limit", None, "-"),
     ("reevaluate", True, "yes"), ("reevaluate", False, "no"), ("warmup", 3, "3"),
     ("prompt", " | ".join(["{}"] * 30),
      "{} | {} | {} | {} | {} | {} | {} | {} | {} | {} … (ae889b68)")],
)  # fmt: skip
def test_a_setting_is_shown_as_tables_name_it(name, value, text):
    assert frame.shown(name, value) == text
    names = ("ratio", "fixed", "noise", "batch_size")
    heads = ["noise", "threshold", "injected noise", "batch size"]
    assert [frame.setting_name(name) for name in names] == heads


@given(
    st.lists(
        st.dictionaries(st.integers(0, 6), st.integers(0, 40).map(lambda n: n / 40), min_size=1),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=300, deadline=None)
def test_marks_are_monotone_in_the_rank(by_seed):
    values = list(map(fold, by_seed))
    row_marks, means = marks(values, ACC_H), [value.mean for value in values]
    order = sorted(zip(means, row_marks, strict=True), key=lambda pair: -pair[0])
    best = next((one for one, mark in zip(by_seed, row_marks, strict=True) if mark == BEST), {})
    tests = holm({i: paired_t_test(one, best) for i, one in enumerate(by_seed) if one is not best})
    signs = [["", CLOSE, BEST].index(mark) for _, mark in order]
    assert signs == sorted(signs, reverse=True)
    for mean, mark in order:
        assert {m for other, m in order if math.isclose(other, mean)} == {mark}
        assert (mark == BEST) == (math.isclose(mean, max(means)) and len(means) > 1)
    for i, mark in enumerate(row_marks):
        assert mark != CLOSE or (tests[i] is not None and tests[i] >= LEVEL)
