"""Which rows are compared, by which test, and what is marked: by hand."""

import dataclasses
import math

import numpy as np
import pytest
from grids import METHODS
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import kept_run
from scipy.stats import f as f_distribution
from scipy.stats import t as student_t
from scipy.stats import ttest_rel

from zsntta_cli.methods import METHODS as ALL_METHODS
from zsntta_cli.results import ranking
from zsntta_cli.results.frame import Value, fold, tables
from zsntta_cli.results.pooled import cochran
from zsntta_cli.results.ranking import BY_ITEMS, BY_SEEDS, NO_TEST, average_marks
from zsntta_cli.results.significance import SplitCounts, mcnemar, swap_test
from zsntta_cli.simulation.metrics import METRICS, Measures


def rows(*kept):
    return [row for table in tables(kept) for row in table.rows]


def marks(made, metric, ood_set="glyphs"):
    return ranking.marks(made, ood_set, METRICS[metric])


def test_marks_by_items_are_mcnemars():
    # 40 ID and 40 OOD samples. ridge alone has 8 ID samples right: 2/2^8; tda 5 less: 2/2^5.
    known = {"zs-clip": 20, "tda": 23, "ridge": 28}
    made = rows(*(kept_run(m, known=k, caught=30, samples=40) for m, k in known.items()))
    found = {row.method: mark for row, mark in zip(made, marks(made, "acc_s"), strict=True)}
    assert found["ridge"].is_best
    assert found["ridge"].p is None
    assert found["zs-clip"].p == pytest.approx(2 * 2 / 2**8)  # Holm: the smallest of two
    assert not found["zs-clip"].is_close
    assert found["tda"].p == pytest.approx(2 / 2**5)
    assert found["tda"].is_close
    assert {found[m].test for m in ("zs-clip", "tda")} == {BY_ITEMS}


def test_samples_of_each_kind_are_told_by_how_they_were_called():
    best = kept_run("ridge", known=range(4, 34), caught=range(30), samples=40)
    rival = kept_run("zs-clip", known=range(20), caught=range(10, 30), samples=40)
    made = rows(best, rival)
    [_, p] = sorted((m.p for m in marks(made, "acc_s")), key=lambda p: p is not None)
    assert p == pytest.approx(mcnemar(14, 4))
    [_, p] = sorted((m.p for m in marks(made, "acc_n")), key=lambda p: p is not None)
    assert p == pytest.approx(mcnemar(10, 0))
    [_, p] = sorted((m.p for m in marks(made, "acc_h")), key=lambda p: p is not None)
    assert p == pytest.approx(swap_test(SplitCounts(14, 4, 16, 40), SplitCounts(10, 0, 20, 40)))


def test_streams_of_several_seeds_are_combined():
    kept = [
        kept_run(method, seed=seed, known=known, samples=40)
        for method, by_seed in (("zs-clip", (20, 24)), ("ridge", (26, 28)))
        for seed, known in enumerate(by_seed)
    ]
    made = rows(*kept)
    [mark] = [m for m in marks(made, "acc_s") if m.p is not None]
    assert mark.p == pytest.approx(2 * (2 / 2**6 + 2 / 2**4) / 2)
    assert mark.is_close


def without_items(**by_method):
    """Rows of runs that kept no items: ID samples of 100 that are right, by seed."""
    return rows(
        *(
            kept_run(method.replace("_", "-"), seed=seed, known=right, samples=100, items=False)
            for method, by_seed in by_method.items()
            for seed, right in enumerate(by_seed)
        )
    )


def marked(made, metric="acc_s"):
    """The methods of the best rows, and of those that are close."""
    by_row = list(zip(made, marks(made, metric), strict=True))
    return [{row.method for row, m in by_row if getattr(m, f"is_{k}")} for k in ("best", "close")]


def test_two_rows_without_items_are_compared_by_a_paired_t_test():
    made = without_items(zs_clip=(50, 52, 51, 53, 50), ridge=(51, 52, 54, 53, 53))
    [mark] = [m for m in marks(made, "acc_s") if m.p is not None]
    assert mark.test == BY_SEEDS
    assert mark.p == pytest.approx(ttest_rel((50, 52, 51, 53, 50), (51, 52, 54, 53, 53)).pvalue)
    assert marked(made) == [{"ridge"}, {"zs-clip"}]


def test_seeds_need_items_or_five_in_common():
    four = {"zs_clip": (50, 52, 51, 53), "ridge": (51, 52, 54, 53)}
    assert marked(without_items(**four)) == [{"ridge"}, set()]
    [mark] = [m for m in marks(without_items(**four), "acc_s") if not m.is_best]
    assert (mark.test, mark.p) == (NO_TEST, None)
    apart = rows(
        *(kept_run("ridge", seed=s, known=60 + s, items=False, samples=100) for s in range(5)),
        *(kept_run("tda", seed=s, known=58 + s, items=False, samples=100) for s in range(1, 6)),
    )
    assert marked(apart) == [{"ridge"}, set()]


def test_items_of_one_row_alone_are_no_use():
    made = rows(
        *(kept_run("ridge", seed=s, known=8) for s in range(2)),
        *(kept_run("tda", seed=s, known=7, items=False) for s in range(2)),
    )
    assert marked(made) == [{"ridge"}, set()]


def test_equal_means_are_the_best_alike_and_a_single_row_is_not():
    made = rows(kept_run("zs-clip", items=False), kept_run("tda", items=False))
    assert marked(made, "acc_h") == [{"zs-clip", "tda"}, set()]
    assert marked(made[:1], "acc_h") == [set(), set()]


@pytest.mark.parametrize("metric", ["flagged", "acc_h_gap"])
def test_what_is_neither_good_nor_bad_by_itself_has_no_best(metric):
    values = {"zs-clip": 0.2, "ridge": 0.4}
    made = rows(*(kept_run(m, record={"flags": Measures(flagged=v), "accuracies": Measures(
        acc_s=0.5, acc_n=0.5, acc_h=0.5, acc_h_gap=v)}) for m, v in values.items()))  # fmt: skip
    assert [row.value("glyphs", metric).mean for row in made] == [0.2, 0.4]
    assert marks(made, metric) == [ranking.NO_MARK] * 2
    by_seed = [{0: 0.2, 1: 0.3}, {0: 0.4, 1: 0.5}]
    assert average_marks(by_seed, metric) == [ranking.NO_MARK] * 2


def test_low_fpr95_is_best():
    kept = [
        kept_run(m, seed=s, auroc=a) for m, a in (("mcm", 0.9), ("energy", 0.7)) for s in range(5)
    ]
    made = rows(*kept)
    for metric in ("auroc", "fpr95"):
        assert marked(made, metric) == [{"mcm"}, set()], metric


# A sweep's settings, the wild one last, as its seeds came out.
SWEEP = [(78.2 + 0.2 * i, 78.4 + 0.2 * i, 78.6 + 0.2 * i) for i in range(12)]
WILD = (80.5, 43.1, 57.2)


def places_of(by_row, metric="acc_h"):
    """Which rows are the best, and which are close."""
    by_seed = [{s: value / 100 for s, value in enumerate(row)} for row in by_row]
    row_marks = average_marks(by_seed, metric)
    return [[i for i, m in enumerate(row_marks) if getattr(m, k)] for k in ("is_best", "is_close")]


def test_of_three_seeds_the_best_mean_alone_is_marked_however_wild_another_is():
    assert places_of([*SWEEP, WILD]) == [[11], []]


def test_a_wild_row_does_not_make_the_others_look_equal():
    generator = np.random.default_rng(5)
    tame = [70 + i + generator.normal(0, 0.2, 5) for i in range(12)]
    wild = [80.5, 43.1, 57.2, 79.0, 41.7]
    assert places_of([*tame, wild]) == places_of(tame) == [[11], []]
    tame[10] += tame[11].mean() - tame[10].mean() - 0.05  # as good as the best
    assert places_of([*tame, wild]) == places_of(tame) == [[11], [10]]
    best = [*tame, np.array(wild) + 26]  # the mean of the wild one is the best: of nothing sure
    assert places_of(best) == [[12], [*range(12)]]


def test_the_error_is_that_of_a_two_way_analysis_of_variance():
    values = np.random.default_rng(0).normal(60, 1, (4, 6)) + np.arange(4)[:, None] * 0.8
    by_row = [dict(enumerate(row / 100)) for row in values]
    row_marks = average_marks(by_row, METRICS["acc_h"])
    order = np.argsort(-values.mean(1))
    residuals = values - values.mean(1)[:, None] - values.mean(0) + values.mean()
    error = np.sqrt(2 * (residuals**2).sum() / (3 * 5) / 6)
    best = values.mean(1)[order[0]]
    p = [2 * student_t.sf((best - values.mean(1)[i]) / error, 15) for i in order[1:]]
    steps = np.maximum.accumulate([min(1, v * (3 - k)) for k, v in enumerate(sorted(p))])
    assert sorted(row_marks[i].p for i in order[1:]) == pytest.approx(list(steps))
    assert {row_marks[i].test for i in order[1:]} == {BY_SEEDS}


def test_cochrans_test_is_that_of_the_f_distribution():
    for count, freedom in ((3, 4), (13, 4), (30, 9)):
        variances = np.random.default_rng(count).chisquare(freedom, count)
        share = variances.max() / variances.sum()
        f = (count - 1) * share / (1 - share)
        expected = min(1, count * f_distribution.sf(f, freedom, (count - 1) * freedom))
        assert cochran(variances, freedom) == pytest.approx(expected, rel=1e-3)


def test_rows_without_any_spread_do_not_make_the_others_differ():
    still = [[60.0] * 5, [61.0] * 5, [61.0] * 5]
    assert places_of(still) == [[1, 2], []]
    lively = [[70.0, 70.4, 69.8, 70.3, 69.9], [70.1, 69.9, 70.2, 69.6, 70.4]]
    assert places_of([*lively, *still * 5])[1] == places_of(lively)[1] == [1]
    assert places_of([[70.0, 70.4, 69.8, 70.3, 69.9], [70.0] * 5]) == [[0], [1]]


def test_nothing_is_marked_below_a_row_that_cannot_be_compared():
    generator = np.random.default_rng(1)
    three = [70 + generator.normal(0, 1, 5) for _ in range(3)]
    three.sort(key=lambda row: -row.mean())
    assert places_of(three) == [[0], [1, 2]]
    assert places_of([three[0], three[1][:1] * 0 + three[1].mean(), three[2]]) == [[0], []]


def test_rivals_of_equal_means_are_marked_alike():
    made = rows(
        kept_run("ridge", known=30, samples=40),
        kept_run("tda", known=25, samples=40),  # 5 samples alone: 2/2^5
        kept_run("zs-clip", known=range(10, 35), samples=40),  # 10 and 5
    )
    assert marked(made) == [{"ridge"}, {"tda", "zs-clip"}]
    worse = rows(
        kept_run("ridge", known=30, samples=40),
        kept_run("tda", known=20, samples=40),  # 10 samples alone: 2/2^10
        kept_run("zs-clip", known=range(19, 39), samples=40),  # 19 and 9
    )
    by_method = dict(zip([row.method for row in worse], marks(worse, "acc_s"), strict=True))
    assert by_method["tda"].p < 0.05 < by_method["zs-clip"].p
    assert marked(worse) == [{"ridge"}, set()]


@given(
    st.lists(
        st.dictionaries(st.integers(0, 6), st.integers(0, 40).map(lambda n: n / 40), min_size=1),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=300, deadline=None)
def test_marks_are_monotone_in_the_rank(by_seed):
    row_marks = average_marks(by_seed, "acc_h")
    means = [fold(one).mean for one in by_seed]
    order = sorted(zip(means, row_marks, strict=True), key=lambda pair: -pair[0])
    signs = [2 * mark.is_best + mark.is_close for _, mark in order]
    assert signs == sorted(signs, reverse=True)
    for mean, mark in order:
        alike = {(m.is_best, m.is_close) for other, m in order if math.isclose(other, mean)}
        assert alike == {(mark.is_best, mark.is_close)}
        assert mark.is_best == (math.isclose(mean, max(means)) and len(means) > 1)


@given(
    right=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=6), min_size=2, max_size=4),
    has_items=st.lists(st.booleans(), min_size=4, max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_marks_are_monotone_with_items_of_some_rows_too(right, has_items):
    made = rows(
        *(
            kept_run(method, seed=seed, known=known, samples=60, items=is_kept)
            for method, by_seed, is_kept in zip(METHODS, right, has_items, strict=False)
            for seed, known in enumerate(by_seed)
        )
    )
    means = [row.value("glyphs", "acc_s").mean for row in made]
    order = sorted(zip(means, marks(made, "acc_s"), strict=True), key=lambda pair: -pair[0])
    signs = [2 * mark.is_best + mark.is_close for _, mark in order]
    assert signs == sorted(signs, reverse=True)
    for _, mark in order:
        assert not mark.is_close or (mark.p is not None and mark.p >= 0.05)


@pytest.mark.parametrize(("count", "seeds"), [(2, 5), (5, 5), (13, 5), (8, 10)])
def test_the_truly_best_row_keeps_its_mark_and_a_clearly_worse_one_has_none(count, seeds):
    generator = np.random.default_rng(24)
    draws, lost, kept_worse = 400, 0, 0
    for _ in range(draws):
        values = generator.normal(0, 1, (count, seeds)) + generator.normal(0, 2, seeds)
        [best, close] = places_of(60 + values)  # all are equally good: say that the first is best
        lost += 0 not in best + close
        values[-1] -= 5
        [best, close] = places_of(60 + values)
        kept_worse += count - 1 in best + close
    assert lost / draws <= 0.07
    assert kept_worse / draws <= 0.02


def test_averages_of_references_and_none_are_no_rivals():
    by_seed = [{0: 0.9, 1: 0.9}, {0: 0.5, 1: 0.6}, {}, {0: 0.4, 1: 0.4}]
    averages = average_marks(by_seed, METRICS["acc_h"], [False, True, True, True])
    assert [m.is_best for m in averages] == [False, True, False, False]
    assert [m.test for m in averages] == ["", "", "", NO_TEST]


def test_a_stopped_run_is_no_rival_and_enters_no_test():
    stopped = {"unfinished": 5}
    made = rows(
        kept_run("zs-clip", known=5), kept_run("tda", known=9, record=stopped),
        kept_run("ridge", known=6), kept_run("ridge", seed=1, known=10, record=stopped),
    )  # fmt: skip
    by_method = dict(zip([row.method for row in made], marks(made, "acc_s"), strict=True))
    assert by_method["ridge"].is_best
    assert by_method["tda"] == ranking.NO_MARK
    assert by_method["zs-clip"].p == 1.0  # one sample of the finished streams


def test_a_reference_that_sees_the_whole_stream_is_no_rival():
    made = rows(kept_run("etlt", known=10), kept_run("ridge", known=6), kept_run("tda", known=5))
    assert ALL_METHODS["etlt"].offline
    by_method = dict(zip([row.method for row in made], marks(made, "acc_s"), strict=True))
    assert by_method["etlt"] == ranking.NO_MARK
    assert by_method["ridge"].is_best


def test_ranks_are_among_whole_values_equal_ones_alike():
    values = [fold({0: 0.6}), fold({0: 0.6}), fold({0: 0.8}), Value(math.nan), fold({0: 0.9})]
    values.append(dataclasses.replace(fold({0: 0.95}), is_whole=False))
    competes = [True, True, True, True, False, True]
    assert ranking.ranks(values, competes, METRICS["acc_h"]) == [2, 2, 1, None, None, None]
    assert ranking.ranks(values, competes, METRICS["fpr95"]) == [1, 1, 3, None, None, None]


def test_a_pipeline_that_is_shown_the_truth_is_no_rival():
    made = rows(
        kept_run("tent", known=10, pipeline="gt"), kept_run("tent", known=7),
        kept_run("ridge", known=6),
    )  # fmt: skip
    by_pipeline = {
        row.settings.get("pipeline"): mark
        for row, mark in zip(made, marks(made, "acc_s"), strict=True)
    }
    assert by_pipeline["gt"] == ranking.NO_MARK
    assert by_pipeline["normal"].is_best
