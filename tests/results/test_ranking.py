"""Which rows are compared, by which test, and what is marked: by hand."""

import dataclasses
import math
from types import SimpleNamespace

import pytest
from kept import kept_run

from zsntta_cli.methods import METHODS as ALL_METHODS
from zsntta_cli.results import ranking
from zsntta_cli.results.frame import Value, fold, tables
from zsntta_cli.results.ranking import BY_ITEMS, BY_SEEDS, NO_TEST, average_marks, bits_of
from zsntta_cli.results.significance import SplitCounts, mcnemar, swap_test
from zsntta_cli.simulation.metrics import METRICS


def rows(*kept):
    runs = [SimpleNamespace(record=k.record, bits=k.items and bits_of(k.items)) for k in kept]
    return [row for table in tables(runs) for row in table.rows]


def marks(made, metric, ood_set="glyphs"):
    return ranking.marks(made, ood_set, METRICS[metric])


def test_marks_by_items_are_mcnemars():
    # 40 ID and 40 OOD samples. ridge alone has 8 ID samples right: 2/2^8; tda 5 less: 2/2^5.
    known = {"zs-clip": 20, "tda": 23, "ridge": 28}
    made = rows(*(kept_run(m, known=k, caught=30, samples=40) for m, k in known.items()))
    found = {row.method: mark for row, mark in zip(made, marks(made, "acc_s"), strict=True)}
    assert found["ridge"].is_marked
    assert found["ridge"].p is None
    assert found["zs-clip"].p == pytest.approx(2 * 2 / 2**8)  # Holm: the smallest of two
    assert not found["zs-clip"].is_marked
    assert found["tda"].p == pytest.approx(2 / 2**5)
    assert found["tda"].is_marked
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
    assert mark.is_marked


def test_without_items_seeds_are_paired():
    kept = [
        kept_run(method, seed=seed, known=known, samples=100, items=method == "ridge")
        for method, by_seed in (("zs-clip", (50, 52, 51)), ("ridge", (60, 61, 62)))
        for seed, known in enumerate(by_seed)
    ]
    made = rows(*kept)
    [mark] = [m for m in marks(made, "acc_s") if m.p is not None]
    # Differences 10, 9, 11 points: t = 10 / (1 / sqrt(3)) with two degrees of freedom.
    t = 10 * math.sqrt(3)
    assert mark.test == BY_SEEDS
    assert mark.p == pytest.approx(1 - t / math.sqrt(2 + t**2))
    assert not mark.is_marked


def test_where_no_test_is_possible_the_best_alone_is_marked():
    made = rows(kept_run("zs-clip", known=7, items=False), kept_run("ridge", known=8, items=False))
    found = {row.method: mark for row, mark in zip(made, marks(made, "acc_s"), strict=True)}
    assert found["ridge"].is_marked
    assert not found["zs-clip"].is_marked
    assert (found["zs-clip"].test, found["zs-clip"].p) == (NO_TEST, None)


def test_equal_values_are_marked_alike_and_a_single_row_is_not():
    made = rows(kept_run("zs-clip", items=False), kept_run("tda", items=False))
    assert [m.is_marked for m in marks(made, "acc_h")] == [True, True]
    assert [m.is_marked for m in marks(made[:1], "acc_h")] == [False]


def test_low_fpr95_is_best():
    kept = [
        kept_run(m, seed=s, auroc=a) for m, a in (("mcm", 0.9), ("energy", 0.7)) for s in (0, 1)
    ]
    made = rows(*kept)
    for metric in ("auroc", "fpr95"):
        found = {
            row.method: known.is_marked
            for row, known in zip(made, marks(made, metric), strict=True)
        }
        assert found == {"energy": False, "mcm": True}, metric


def test_averages_are_tested_over_seeds():
    [one, other] = average_marks([{0: 0.5, 1: 0.6, 2: 0.7}, {0: 0.4, 1: 0.5, 2: 0.6}], "acc_h")
    assert one.is_marked
    assert (other.is_marked, other.p, other.test) == (False, 0.0, BY_SEEDS)
    assert [m.is_marked for m in average_marks([{0: 0.5}, {}], "acc_h")] == [False, False]


def test_averages_of_references_and_none_are_no_rivals():
    by_seed = [{0: 0.9, 1: 0.9}, {0: 0.5, 1: 0.6}, {}, {0: 0.4, 1: 0.4}]
    averages = average_marks(by_seed, METRICS["acc_h"], [False, True, True, True])
    assert [m.is_marked for m in averages] == [False, True, False, True]
    assert [m.test for m in averages] == ["", "", "", BY_SEEDS]


def test_a_stopped_run_is_no_rival_and_enters_no_test():
    stopped = {"unfinished": 5}
    made = rows(
        kept_run("zs-clip", known=5), kept_run("tda", known=9, record=stopped),
        kept_run("ridge", known=6), kept_run("ridge", seed=1, known=10, record=stopped),
    )  # fmt: skip
    by_method = dict(zip([row.method for row in made], marks(made, "acc_s"), strict=True))
    assert by_method["ridge"].is_marked
    assert by_method["tda"] == ranking.NO_MARK
    assert by_method["zs-clip"].p == 1.0  # one sample of the finished streams


def test_a_reference_that_sees_the_whole_stream_is_no_rival():
    made = rows(kept_run("etlt", known=10), kept_run("ridge", known=6), kept_run("tda", known=5))
    assert ALL_METHODS["etlt"].offline
    by_method = dict(zip([row.method for row in made], marks(made, "acc_s"), strict=True))
    assert by_method["etlt"] == ranking.NO_MARK
    assert by_method["ridge"].is_marked


def test_ranks_are_among_whole_values_equal_ones_alike():
    values = [fold({0: 0.6}), fold({0: 0.6}), fold({0: 0.8}), Value(math.nan), fold({0: 0.9})]
    values.append(dataclasses.replace(fold({0: 0.95}), is_whole=False))
    competes = [True, True, True, True, False, True]
    assert ranking.ranks(values, competes, METRICS["acc_h"]) == [2, 2, 1, None, None, None]
    assert ranking.ranks(values, competes, METRICS["fpr95"]) == [1, 1, 3, None, None, None]
