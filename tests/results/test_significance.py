"""Tests of methods against each other: by hand, against SciPy, and against all throws of coins."""

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp

from zsntta_cli.results.significance import (
    SplitCounts,
    combined,
    holm,
    mcnemar,
    swap_test,
    t_tails,
)
from zsntta_cli.simulation.metrics import harmonic_mean


def test_mcnemar_by_hand():
    # Five samples that only one of the two has right: all five the first's, 2 · 1/32.
    assert mcnemar(5, 0) == pytest.approx(2 / 32)
    assert mcnemar(1, 4) == pytest.approx(2 * (1 + 5) / 32)
    assert mcnemar(3, 3) == 1
    assert mcnemar(0, 0) == 1


@pytest.mark.parametrize("counts", [(1, 0), (3, 2), (10, 25), (400, 480), (3000, 2000), (1, 900)])
def test_mcnemar_as_scipys_binomial_test(counts):
    wanted = binomtest(counts[0], sum(counts)).pvalue
    assert mcnemar(*counts) == pytest.approx(wanted, rel=1e-8)
    assert mcnemar(*counts[::-1]) == mcnemar(*counts)


def by_all_throws(known, noise):
    """The p-value of the difference in Acc_H, by every way in which samples change sides."""

    def difference(heads, tails):
        first = harmonic_mean(
            (known.both + heads) / known.total, (noise.both + tails) / noise.total
        )
        second = harmonic_mean(
            (known.both + known.split - heads) / known.total,
            (noise.both + noise.split - tails) / noise.total,
        )
        return first - second

    seen = abs(difference(known.first, noise.first))
    throws = list(itertools.product((0, 1), repeat=known.split + noise.split))
    as_large = [
        abs(difference(sum(throw[: known.split]), sum(throw[known.split :]))) >= seen - 1e-12
        for throw in throws
    ]
    return np.mean(as_large)


@pytest.mark.parametrize(
    ("known", "noise"),
    [
        (SplitCounts(4, 1, 10, 20), SplitCounts(2, 3, 5, 15)),
        (SplitCounts(5, 0, 2, 9), SplitCounts(4, 0, 1, 30)),
        (SplitCounts(1, 6, 0, 7), SplitCounts(5, 0, 0, 6)),
        (SplitCounts(3, 3, 8, 20), SplitCounts(1, 1, 4, 9)),
        (SplitCounts(0, 0, 8, 20), SplitCounts(6, 1, 4, 19)),
    ],
)
def test_the_test_of_acc_h_is_that_of_all_throws(known, noise):
    assert swap_test(known, noise) == pytest.approx(by_all_throws(known, noise))


def test_the_test_of_acc_h_is_mcnemars_where_one_kind_alone_is_split():
    assert swap_test(SplitCounts(90, 60, 500, 1000), SplitCounts(0, 0, 700, 900)) == pytest.approx(
        mcnemar(90, 60)
    )
    assert swap_test(SplitCounts(0, 0, 500, 800), SplitCounts(5, 30, 70, 900)) == pytest.approx(
        mcnemar(5, 30)
    )


def test_the_test_of_acc_h_with_many_samples_is_that_of_thrown_coins():
    known, noise = SplitCounts(520, 470, 7000, 10_000), SplitCounts(330, 350, 8000, 10_000)
    generator = np.random.default_rng(0)
    heads, tails = (generator.binomial(pair.split, 0.5, 400_000) for pair in (known, noise))

    def acc_h(a, b):
        return 2 * a * b / (a + b)

    def difference(h, t):
        return acc_h(0.7 + h / 10_000, 0.8 + t / 10_000) - acc_h(
            0.7 + (990 - h) / 10_000, 0.8 + (680 - t) / 10_000
        )

    wanted = np.mean(np.abs(difference(heads, tails)) >= abs(difference(520, 330)))
    assert swap_test(known, noise) == pytest.approx(wanted, abs=0.003)


def test_equal_methods_differ_by_nothing_and_other_ones_by_all():
    assert swap_test(SplitCounts(0, 0, 5, 9), SplitCounts(0, 0, 5, 9)) == 1
    assert swap_test(SplitCounts(900, 0, 50, 1000), SplitCounts(900, 0, 50, 1000)) < 1e-9


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 11])
def test_t_as_scipys(n):
    result = ttest_1samp(np.random.default_rng(n).normal(0.7, 1, n), 0)
    assert t_tails(result.statistic, n - 1) == pytest.approx(result.pvalue)


def test_streams_that_hang_together_are_combined_by_twice_their_mean():
    assert combined([0.03]) == 0.03
    assert combined([0.01, 0.03]) == pytest.approx(0.04)
    assert combined([0.9, 0.8]) == 1


def test_holm_by_hand():
    # Sorted: 0.01 · 3, 0.02 · 2, 0.04 · 1, none below the one before.
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
