"""Which runs make a row, which rows are compared, and what is marked: by hand."""

import dataclasses
import math

import pytest
from kept import kept_run

from zsntta_cli.report.page.entries import spots, taken
from zsntta_cli.report.page.ranking import (
    BY_ITEMS,
    BY_SEEDS,
    NO_TEST,
    average_marks,
    marks,
    ranks,
    standings,
)
from zsntta_cli.report.page.rows import rows_of
from zsntta_cli.results.significance import Pair, mcnemar, swap_test


def rows(*kept):
    return rows_of(taken(kept).entries)


def spot_of(kept):
    [spot] = spots(taken([kept]).entries)
    return spot


def test_a_run_that_is_there_twice_is_one_the_later_with_the_items_of_either():
    later = {"created": "2026-02-01T00:00:00+00:00", "seconds": 2.0}
    first, last = kept_run(), kept_run(items=False, record=later)
    for order in ((first, last), (last, first)):
        [entry] = taken(order).entries
        assert entry.record.seconds == 2.0
        assert entry.bits is not None


def test_unfinished_runs_and_those_of_other_rules_are_left_out_and_counted():
    found = taken([
        kept_run(seed=0), kept_run(seed=1, record={"unfinished": 3}),
        kept_run(seed=2, record={"revision": "0.9"}), kept_run(seed=3, record={"revision": ""}),
    ])  # fmt: skip
    assert [e.record.settings.stream.seed for e in found.entries] == [0]
    assert (found.unfinished, found.outdated) == (1, 2)


def test_the_order_of_runs_is_their_own_and_not_that_of_their_making():
    kept = [
        kept_run(method, ood, ratio, seed)
        for method in ("ridge", "zs-clip") for ood in ("textures", "glyphs")
        for ratio in (0.5, 0.25) for seed in (1, 0)
    ]  # fmt: skip
    wanted = [e.record for e in taken(kept).entries]
    assert [e.record for e in taken(kept[::-1]).entries] == wanted
    first = wanted[0].settings
    assert (first.stream.ratio, first.ood_set, first.method, first.stream.seed) == (
        0.25, "glyphs", "zs-clip", 0,
    )  # fmt: skip


def test_injection_makes_no_other_stream_and_order_limit_and_ratio_do():
    plain = spot_of(kept_run())
    assert spot_of(kept_run(noise="gaussian", noise_every=2, placement="shuffled")) == plain
    for other in ({"order": "burst"}, {"limit": 7}, {"ood_fill": "cap"}, {"ratio": 0.25}):
        assert spot_of(kept_run(**other)) != plain, other


def test_rounded_odds_make_another_stream_where_there_is_something_to_round():
    assert spot_of(kept_run(rounded_odds=True)) == spot_of(kept_run())
    odds = {"ratio": 0.25, "rounded_odds": True}
    assert spot_of(kept_run(**odds)) != spot_of(kept_run(ratio=0.25))


@pytest.mark.parametrize("name", ["shapes", "glyphs", "text/shapes"])
def test_rows_of_other_features_are_never_ranked_together(name):
    others = {name: "9" * 64}
    made = rows(kept_run("zs-clip"), kept_run("tda"), kept_run("ridge", digests=others),
                kept_run("zs-clip", digests=others))  # fmt: skip
    groups = {}
    for row in made:
        groups.setdefault(row.spot, []).append(row.method)
    assert sorted(map(sorted, groups.values())) == [["ridge", "zs-clip"], ["tda", "zs-clip"]]


def test_other_text_of_the_same_files_is_never_ranked_together_though_each_method_ran_once():
    one, other = rows(kept_run(), kept_run("adand", digests={"text/shapes": "9" * 64}))
    assert one.spot != other.spot


def test_prompts_are_rows_of_one_stream_each_with_its_text():
    other = kept_run(prompt="art of a {}.", digests={"text/shapes": "9" * 64})
    one, two = rows(kept_run(), other)
    assert one.spot == two.spot
    assert {one.label, two.label} == {
        "zs-clip (prompt a photo of a {}.)", "zs-clip (prompt art of a {}.)",
    }  # fmt: skip


def test_a_row_is_told_apart_by_its_preset_or_by_what_differs_within_it():
    made = rows(
        kept_run("adand"), kept_run("adand", warmup=3), kept_run("adand", preset="tuned"),
        kept_run("zs-clip"),
    )  # fmt: skip
    assert [row.label for row in made] == [
        "zs-clip", "adand (paper, warmup 10)", "adand (paper, warmup 3)", "adand (tuned, warmup 3)",
    ]  # fmt: skip


def test_noise_images_of_another_digest_make_another_row():
    others = {"noise-gaussian": "9" * 64}
    made = rows(kept_run("adand"), kept_run("adand", seed=1, digests=others))
    assert [row.label for row in made] == [
        f"adand (features of noise-gaussian {digit * 8})" for digit in "49"
    ]  # fmt: skip


def test_a_row_has_mean_and_deviation_over_its_seeds():
    [row] = rows(kept_run(seed=0, known=6), kept_run(seed=1, known=8))
    assert row.values["acc_s"].mean == pytest.approx(0.7)
    assert row.values["acc_s"].std == pytest.approx(math.sqrt(2) / 10)
    [alone] = rows(kept_run())
    assert math.isnan(alone.values["acc_s"].std)


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
    assert p == pytest.approx(swap_test(Pair(14, 4, 16, 40), Pair(10, 0, 20, 40)))


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


def test_ranks_are_of_what_decides_equal_ones_alike():
    kept = {"zs-clip": 6, "tda": 6, "ridge": 8}
    made = rows(*(kept_run(m, known=k) for m, k in kept.items()))
    assert dict(zip([row.method for row in made], ranks(made), strict=True)) == {
        "zs-clip": 2, "tda": 2, "ridge": 1,
    }  # fmt: skip
    nothing = dataclasses.replace(kept_run().record.accuracies, acc_h=math.nan)
    assert ranks(rows(kept_run("mcm", record={"accuracies": nothing}))) == [None]


def test_standings_are_the_marks_of_each_stream():
    made = rows(kept_run("zs-clip"), kept_run("ridge"), kept_run("ridge", "textures"))
    found = standings(made)
    assert len(found) == 3 * 5
    assert [found[row, "acc_h"].is_marked for row in made] == [
        row.spot.ood_set == "glyphs" for row in made
    ]
