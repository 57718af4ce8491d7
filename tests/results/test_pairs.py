"""Tests over pairs: by hand, against SciPy, and by streams of methods that do not differ."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import (
    PermutationMethod,
    friedmanchisquare,
    rankdata,
    studentized_range,
    ttest_1samp,
    wilcoxon,
)

from zsntta_cli.results import pairs
from zsntta_cli.results.significance import LEVEL
from zsntta_cli.simulation.metrics import METRICS

ACC_H, FPR95 = METRICS["acc_h"], METRICS["fpr95"]
MOST_ERRORS = 0.07  # of tests at 5 %, where nothing differs


def apart(values):
    """Differences on pairs of which no two share an ID set."""
    return {(f"id{i}", "ood"): value for i, value in enumerate(values)}


def by_pair(values, seeds=(0,)):
    """A method's values on such pairs, the same for each seed."""
    return {pair: dict.fromkeys(seeds, value) for pair, value in apart(values).items()}


# One against another.


def test_six_signs_alike_by_hand():
    assert pairs.signed_rank_test(apart([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])) == 2 / 2**6
    # The rank sums of 21 that are as far apart as 20 to 1: none against, or 1 against, twice.
    assert pairs.signed_rank_test(apart([-0.1, 0.2, 0.3, 0.4, 0.5, 0.6])) == 4 / 2**6


@pytest.mark.parametrize("n", [6, 9, 20, 44])
def test_pairs_that_share_nothing_have_wilcoxons_test(n):
    values = np.random.default_rng(n).normal(0.4, 1, n)
    assert pairs.signed_rank_test(apart(values)) == pytest.approx(
        wilcoxon(values, method="exact").pvalue
    )


@pytest.mark.parametrize("seed", range(5))
def test_ties_and_zeros_as_pratts_by_all_signs(seed):
    values = np.append([0, 0], np.random.default_rng(seed).integers(-2, 5, 9)) / 100
    expected = wilcoxon(
        values, zero_method="pratt", method=PermutationMethod(n_resamples=math.inf)
    ).pvalue
    assert pairs.signed_rank_test(apart(values)) == pytest.approx(expected)


def test_methods_that_are_equal_everywhere_have_a_p_of_1():
    assert pairs.signed_rank_test(apart([0.0] * 8)) == 1


def test_hundreds_of_pairs_have_the_normal_p():
    values = np.random.default_rng(0).normal(0.1, 1, 600)
    assert pairs.signed_rank_test(apart(values)) == pytest.approx(
        wilcoxon(values, method="approx").pvalue, rel=1e-6
    )


def test_all_signs_of_an_id_set_are_flipped_together():
    generator = np.random.default_rng(3)
    differences = {
        (f"id{i}", f"ood{j}"): value
        for i in range(7)
        for j, value in enumerate(generator.normal(0.5, 1, 1 + i % 3))
    }
    values = np.array(list(differences.values()))
    ranks = np.sign(values) * (np.argsort(np.argsort(np.abs(values))) + 1)
    groups = np.array([int(id_set[2:]) for id_set, _ in differences])
    throws = np.array([*itertools.product((-1, 1), repeat=7)])
    sums = np.abs((throws[:, groups] * ranks).sum(axis=1))
    expected = (sums >= abs(ranks.sum())).mean()
    assert pairs.signed_rank_test(differences) == pytest.approx(expected)
    assert expected != pytest.approx(wilcoxon(values, method="exact").pvalue)


@pytest.mark.parametrize(
    ("id_set", "source"),
    [
        ("cifar10", "cifar10"), ("cifar10-c:fog:1", "cifar10"), ("imagenet-c:snow:3", "imagenet"),
        ("imagenet-v2", "imagenet-v2"), ("cifar10-6-s0-id", "cifar10"), ("mine-c", "mine-c"),
        ("scenes-s2", "scenes-s2"),
    ],
)  # fmt: skip
def test_corruptions_and_splits_of_a_set_show_its_images(id_set, source):
    assert pairs.image_source(id_set) == source


def test_corruptions_of_one_set_are_no_pairs_that_share_nothing():
    corrupted = {(f"cifar10-c:{name}:1", "svhn"): {0: 0.5} for name in "abcdefgh"}
    nothing = {pair: {0: 0.0} for pair in corrupted}
    assert pairs.compare(corrupted, nothing, ACC_H).p is None


def test_each_pair_speaks_once_by_the_seeds_that_both_have():
    ours = {("a", "x"): {0: 0.5, 1: 0.7, 2: 0.0}, ("a", "y"): {0: 0.5}, ("b", "x"): {4: 0.1}}
    theirs = {("a", "x"): {0: 0.4, 1: 0.4, 3: 0.9}, ("a", "y"): {0: 0.5}, ("b", "x"): {5: 0.1}}
    comparison = pairs.compare(ours, theirs, ACC_H)
    assert comparison.differences == {("a", "x"): 0.2, ("a", "y"): 0.0}
    assert (comparison.wins, comparison.ties, comparison.losses) == (1, 1, 0)
    assert comparison.mean == pytest.approx(0.1)


def test_the_noise_of_a_sum_is_a_tie():
    ours = by_pair([0.1 + 0.2])
    assert pairs.compare(ours, by_pair([0.3]), ACC_H).ties == 1


def test_a_metric_that_is_better_low_is_turned():
    comparison = pairs.compare(by_pair([0.1] * 6), by_pair([0.3] * 6), FPR95)
    assert (comparison.wins, comparison.mean) == (6, pytest.approx(0.2))


def test_an_undefined_value_is_no_pair():
    comparison = pairs.compare(by_pair([0.1, math.nan]), by_pair([0.3, 0.5]), ACC_H)
    assert list(comparison.differences) == [("id0", "ood")]


def test_below_six_pairs_or_id_sets_there_is_no_p():
    assert pairs.compare(by_pair([0.5] * 5), by_pair([0.1] * 5), ACC_H).p is None
    assert pairs.compare(by_pair([0.5] * 6), by_pair([0.1] * 6), ACC_H).p == 2 / 2**6
    shared = {(f"id{i % 5}", f"ood{i}"): {0: 0.5} for i in range(20)}
    zeros = {pair: {0: 0.0} for pair in shared}
    assert pairs.compare(shared, zeros, ACC_H).p is None
    assert pairs.least_p(shared) == 2 / 2**5 > LEVEL


# A family of comparisons.


def test_the_best_is_by_its_average_over_all_pairs():
    rows = {"a": by_pair([0.5, 0.6]), "b": by_pair([0.7, 0.6]), "lacking": by_pair([0.9])}
    rows["lacking"] |= {("id1", "ood"): {}}
    assert pairs.best_of(rows, ACC_H) == "b"
    assert pairs.best_of(rows, FPR95) == "a"
    assert pairs.best_of({"lacking": rows["lacking"]}, ACC_H) is None


def test_holm_is_over_the_rivals_of_a_reference_and_over_all_where_the_best_is_one():
    # The best is above b on all of eight pairs, above c on seven; b and c differ by their signs.
    best, b = [0.5] * 8, [0.4, 0.39, 0.38, 0.37, 0.36, 0.35, 0.34, 0.33]
    c = [0.51, *b[1:]]
    rows = {"best": by_pair(best), "b": by_pair(b), "c": by_pair(c)}
    assert pairs.best_of(rows, ACC_H) == "best"
    to_b, to_c = 2 / 2**8, 4 / 2**8
    rivals = pairs.against("best", rows, ACC_H)
    assert [rivals[row].p for row in "bc"] == [to_b, to_c]
    assert [rivals[row].adjusted for row in "bc"] == [2 * to_b, 2 * to_b]
    every = pairs.against_best("best", rows, ACC_H)
    assert [every[row].differences == rivals[row].differences for row in "bc"] == [True, True]
    assert [every[row].adjusted for row in "bc"] == [3 * to_b, 2 * to_c]


# What there is to find, and nothing: differences of two methods in points, draw by draw.


def draws(id_sets, oods, between_seeds, *, true=0.0, between_sets=0.0, between_pairs=2.0):
    """Differences (draws, pairs, seeds) and their pairs."""
    generator = np.random.default_rng(24)
    keys = [(f"id{i}", f"ood{j}") for i in range(id_sets) for j in range(oods)]
    of_pairs = generator.normal(true, between_pairs, (1000, id_sets, oods))
    of_pairs += between_sets * generator.normal(0, 1, (1000, id_sets, 1))
    values = of_pairs.reshape(1000, -1, 1)
    return keys, values + generator.normal(0, between_seeds, (1000, len(keys), 5))


def share_found(keys, values):
    """How often `compare` tells the two methods apart at 5 %."""
    nothing = {key: dict.fromkeys(range(5), 0.0) for key in keys}
    p_values = [
        pairs.compare(
            {key: dict(enumerate(by_seed)) for key, by_seed in zip(keys, draw, strict=True)},
            nothing,
            ACC_H,
        ).p
        for draw in values.tolist()
    ]
    return np.mean([p is not None and p < LEVEL for p in p_values])


@pytest.mark.parametrize(
    ("n", "between_seeds", "least"), [(5, 0.1, 0), (6, 0.1, 0.01), (44, 0.3, 0.03)]
)
def test_methods_that_do_not_differ_are_told_apart_once_in_twenty(n, between_seeds, least):
    keys, values = draws(n, 1, between_seeds)
    assert least <= share_found(keys, values) <= MOST_ERRORS
    # A t test over the runs, as if seeds were pairs, finds what is not there.
    assert np.mean(ttest_1samp(values.reshape(1000, -1), 0, axis=1).pvalue < LEVEL) > 0.3


def test_pairs_that_share_id_sets_are_not_told_apart_for_what_these_have_in_common():
    keys, values = draws(11, 4, 0.3, between_sets=2.0)
    plain = np.mean(wilcoxon(values.mean(axis=2), axis=1).pvalue < LEVEL)
    assert plain > 2 * MOST_ERRORS
    assert 0.03 <= share_found(keys, values) <= MOST_ERRORS


def test_a_difference_that_is_there_is_found():
    assert share_found(*draws(44, 1, 0.3, true=1.5)) > 0.95
    assert share_found(*draws(11, 4, 0.3, true=2.0, between_sets=1.0)) > 0.9


def test_none_of_several_equal_methods_is_called_worse_than_the_one_that_looks_best():
    values = np.random.default_rng(7).normal(0, 2.0, (150, 8, 20))
    errors = np.zeros(2)
    for draw in values:
        rows = {row: by_pair(of_row) for row, of_row in enumerate(draw.tolist())}
        best = pairs.best_of(rows, ACC_H)
        families = (pairs.against_best(best, rows, ACC_H), pairs.against(best, rows, ACC_H))
        errors += [any(one.adjusted < LEVEL for one in family.values()) for family in families]
    assert errors[0] / len(values) <= MOST_ERRORS
    assert errors[1] / len(values) > MOST_ERRORS, "a choice by the same values needs more"


# Many methods.


def test_critical_values_are_those_of_the_studentized_range():
    for methods in range(2, pairs.MOST_RANKED + 1):
        expected = studentized_range.ppf(0.95, methods, math.inf) / math.sqrt(2)
        assert pairs.critical_value(methods) == pytest.approx(expected, abs=0.0016)


def test_ranks_are_friedmans_and_their_critical_difference_demsars():
    values = np.random.default_rng(0).normal([[0.0], [0.3], [0.5], [2.0]], 1, (4, 14)).round(1)
    rows = {row: by_pair(of_row) for row, of_row in zip("abcd", values.tolist(), strict=True)}
    test = pairs.rank_test(rows, ACC_H)
    assert test.p == pytest.approx(friedmanchisquare(*values).pvalue)
    assert test.weight == 14
    assert test.critical_difference == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 14)))
    ranks = rankdata(-values, axis=0).mean(axis=1)
    assert test.mean_ranks == pytest.approx(dict(zip("abcd", ranks, strict=True)))
    assert list(test.mean_ranks.values()) == sorted(ranks)


def test_groups_are_runs_of_neighbours_closer_than_the_critical_difference():
    ranks = {"a": 1.2, "b": 2.0, "c": 2.9, "d": 3.9, "e": 5.0}
    assert pairs.RankTest(ranks, 10, 0.001, 1.8).groups == [tuple("abc"), tuple("cd"), tuple("de")]
    assert pairs.RankTest(ranks, 10, 0.001, 0.1).groups == []
    assert pairs.RankTest(ranks, 10, 0.2, 1.8).groups == [tuple("abcde")]


def test_pairs_that_share_an_id_set_count_as_one_where_all_have_as_many():
    rows = {
        row: {(f"id{i}", f"ood{j}"): {0: value + i + j} for i in range(7) for j in range(4)}
        for row, value in (("a", 0.1), ("b", 0.2), ("c", 0.3))
    }
    test = pairs.rank_test(rows, ACC_H)
    assert test.weight == pytest.approx(7)
    assert test.p == pytest.approx(friedmanchisquare(*np.array([[1, 2, 3]] * 7).T).pvalue)
    few = {row: {p: v for p, v in of.items() if p[0] < "id5"} for row, of in rows.items()}
    assert pairs.rank_test(few, ACC_H) is None
    assert pairs.rank_test({row: rows[row] for row in "ab"}, ACC_H) is None


def test_id_sets_of_many_pairs_count_for_more_and_for_less_than_all_their_pairs():
    keys = [(f"id{i}", f"ood{j}") for i in range(6) for j in range(5 if i == 0 else 1)]
    rows = {row: {key: {0: row} for key in keys} for row in (1.0, 2.0, 3.0)}
    assert pairs.rank_test(rows, ACC_H).weight == pytest.approx(10**2 / (25 + 5))


def test_friedmans_test_with_shared_id_sets_errs_once_in_twenty():
    keys, _ = draws(11, 4, 0.3)
    generator = np.random.default_rng(5)
    of_sets = generator.normal(0, 2.0, (400, 4, 11, 1))
    values = (of_sets + generator.normal(0, 1.0, (400, 4, 11, 4))).reshape(400, 4, -1)
    rows = [
        {row: {k: {0: v} for k, v in zip(keys, of, strict=True)} for row, of in enumerate(draw)}
        for draw in values.tolist()
    ]
    errors = np.mean([pairs.rank_test(draw, ACC_H).p < LEVEL for draw in rows])
    plain = np.mean([friedmanchisquare(*draw).pvalue < LEVEL for draw in values])
    assert errors <= MOST_ERRORS < plain
