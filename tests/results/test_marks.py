"""Which rows are the best, and which differ from it: by hand, and against SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import kept_run
from scipy.stats import ttest_rel

from zsntta_cli.results.compare import (
    BEST,
    CLOSE,
    LEVEL,
    NOTHING,
    fold,
    holm,
    marks,
    paired_t_test,
)
from zsntta_cli.results.frame import tables
from zsntta_cli.simulation.metrics import METRICS

ACC_H, FPR95 = METRICS["acc_h"], METRICS["fpr95"]


def rows(*kept):
    return [row for table in tables(kept) for row in table.rows]


def marks_of(made, metric="acc_s", ood_set="glyphs"):
    """The marks of rows by method."""
    values = [NOTHING if row.advantage else row.value(ood_set, metric) for row in made]
    every = marks(values, METRICS[metric])
    return {row.method: mark for row, mark in zip(made, every, strict=True)}


def seeds_of(**by_method):
    """Rows of runs of 100 ID samples, of which so many are right, by seed."""
    return rows(
        *(
            kept_run(method.replace("_", "-"), seed=seed, known=right, samples=100)
            for method, by_seed in by_method.items()
            for seed, right in enumerate(by_seed)
        )
    )


def marked(made, metric="acc_s"):
    """The methods of the best rows, and of those that are close."""
    every = marks_of(made, metric).items()
    return [{name for name, mark in every if mark == kind} for kind in (BEST, CLOSE)]


# Over seeds.


def test_the_t_test_by_hand():
    # Differences of 1 to 5: their mean is 3, their variance 2.5, so t = 3 / sqrt(2.5 / 5) = 4.243.
    # Of four degrees of freedom p = 1 - sin (1 + cos^2 / 2), where sin^2 = t^2 / (t^2 + 4).
    sine = math.sqrt(18 / 22)
    expected = 1 - sine * (1 + (4 / 22) / 2)
    first = {s: 10.0 + s + 1 for s in range(5)}
    assert paired_t_test(first, dict.fromkeys(range(5), 10.0)) == pytest.approx(expected)


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
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": None, "e": 0.9})
    assert adjusted == pytest.approx({"a": 0.04, "b": 0.09, "c": 0.09, "d": None, "e": 0.9})


def test_a_row_is_close_unless_the_test_finds_a_difference():
    best, near, far = (61, 62, 64, 63, 63), (60, 62, 61, 63, 60), (50, 52, 51, 53, 50)
    made = seeds_of(cull=best, zs_clip=near, tda=far)
    assert 2 * ttest_rel(far, best).pvalue < LEVEL < ttest_rel(near, best).pvalue
    assert marked(made) == [{"cull"}, {"zs-clip"}]


def places_of(by_row):
    """Which rows are the best, and which are close."""
    values = [fold({s: value / 100 for s, value in enumerate(row)}) for row in by_row]
    row_marks = marks(values, ACC_H)
    return [[i for i, mark in enumerate(row_marks) if mark == kind] for kind in (BEST, CLOSE)]


def test_a_wild_row_is_not_lifted_above_a_better_one():
    generator = np.random.default_rng(5)
    tame = [70 + 2 * i + generator.normal(0, 0.1, 5) for i in range(4)]
    wild = [80.5, 43.1, 57.2, 79.0, 41.7]
    assert paired_t_test(dict(enumerate(wild)), dict(enumerate(tame[3]))) > LEVEL
    assert places_of([*tame, wild]) == places_of(tame) == [[3], []]


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
