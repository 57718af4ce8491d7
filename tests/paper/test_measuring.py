"""Which runs a cell stands for, and what is made of their results: hand-worked numbers."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from paper_cells import cell_of

from zsntta_cli.methods import METHODS
from zsntta_cli.paper import aggregates, comparing, measuring
from zsntta_cli.paper.cells import PaperEncoder, cells
from zsntta_cli.paper.comparing import (
    MISPRINT,
    OTHER_IMAGES,
    OUTSIDE,
    UNKNOWN,
    WITHIN,
    Comparison,
    Measured,
)
from zsntta_cli.paper.printed.published import PaperNumber, printed, remark_on
from zsntta_cli.paper.printed.tables import RANK, TABLES, find_table
from zsntta_cli.paper.runs import Wishes, all_runs, count_items, streams
from zsntta_cli.paper.sampling import Variance
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation.metrics import Measures
from zsntta_cli.simulation.record import Record

WISHES = Wishes(Path("features"))


def record(run, acc_h, seconds=2.0, items=100):
    return Record(
        run, Measures(acc_s=0.5, acc_n=0.6, acc_h=acc_h),
        Measures(auroc=0.9, fpr95=0.1, aupr=0.8), Measures(),
        {"id": items, "ood": 0, "noise": 0}, {}, {}, seconds, "", {}, memory=3 * 2**30,
    )  # fmt: skip


def test_an_average_is_of_the_partners_and_a_clean_stream_is_one():
    average = cell_of(19, id_set="cifar10", method="adand", ratio=0.25)
    runs = [run for seeds in streams(average, WISHES) for run in seeds]
    assert [run.ood_set for run in runs] == ["svhn", "lsun", "texture", "places"]
    assert {(run.encoder, run.stream.ratio, run.stream.seed) for run in runs} == {
        ("ViT-B-16-openai", 0.25, 0)
    }
    [[clean]] = streams(cell_of(19, id_set="cifar10", method="adand", ratio=0.0), WISHES)
    assert (clean.ood_set, clean.stream.noise) == (None, "gaussian")


def test_corruptions_are_fifteen_streams_of_severity_one():
    found = streams(cell_of(15, id_set="imagenet-c", method="zs-clip"), WISHES)
    names = [seeds[0].id_set for seeds in found]
    assert len(set(names)) == 15
    assert all(name.startswith("imagenet-c:") and name.endswith(":1") for name in names)
    assert {seeds[0].ood_set for seeds in found} == {"inaturalist"}


def test_settings_are_of_their_types():
    def only(table, **values):
        return streams(cell_of(table, **values), WISHES)[0][0]

    assert only(22, setting="update_every=32").options.update_every == 32
    assert only(23, setting="queue=64").threshold.queue == 64
    assert only(24, setting="warmup=0").options.warmup == 0
    assert only(11, setting="batch_size=1", ratio=0.5).options.batch_size == 1
    assert only(26, setting="pseudo_labels=detector", ratio=0.5).options.pseudo_labels == "detector"
    assert only(12, setting="noise=none").stream.noise == "none"
    assert only(1, setting="pipeline=gt", method="tpt").options.pipeline == "gt"
    assert only(25, encoder="RN50").encoder == "RN50-openai"
    assert only(4, method="adand", setting="batch_size=128").stream.limit == 6400
    assert only(5, method="mcm").options.temperature == 1.0
    assert streams(cell_of(5, method="neglabel"), WISHES) == ()
    assert len(streams(cell_of(20), WISHES)[0]) == 5
    assert len(streams(cell_of(20), replace(WISHES, seeds=(3,)))[0]) == 1


def test_all_tables_are_so_many_runs():
    """A clean stream is one for all OOD sets; counted once for each, these are 4,169 and 2,449."""
    assert sum(len(all_runs(WISHES, [table])) for table in TABLES) == 3565
    every = all_runs(WISHES)
    assert len(every) == 2034
    assert sum(METHODS[run.method].live for run in every) == 923


def test_means_of_sets_by_seed_and_both_spreads():
    cell = cell_of(20, id_set="cifar10", ood_set="average", method="zs-clip")
    own = streams(cell, replace(WISHES, seeds=(0, 1)))
    values = [(0.80, 0.82), (0.90, 0.90), (0.70, 0.74), (0.62, 0.60)]
    results = {
        run: record(run, h)
        for runs, some in zip(own, values, strict=True)
        for run, h in zip(runs, some, strict=True)
    }
    found = measuring.measure(own, (), results, "acc_h")
    # By seed 75.5 and 76.5; the sets' deviations are √2 times 1, 0, 2 and 1.
    assert found.mean == pytest.approx(76)
    assert found.std == pytest.approx(math.sqrt(0.5))
    assert found.sets_std == pytest.approx(math.sqrt(2))
    assert (found.seeds, found.lacks) == ((0, 1), "")

    del results[own[3][1]]  # of the last set, a seed is missing: those that all have are averaged
    part = measuring.measure(own, (), results, "acc_h")
    assert part.mean == pytest.approx((80 + 90 + 70 + 62) / 4)
    assert (part.seeds, part.lacks) == ((0,), "")
    del results[own[3][0]]  # and now the whole set: there is no average
    lacking = measuring.measure(own, (), results, "acc_h")
    assert math.isnan(lacking.mean)
    assert lacking.lacks == "3 of 4 sets (SVHN, LSUN, Texture)"
    assert measuring.measure(own, (), {}, "acc_h") is None


def test_a_difference_to_zs_clip_is_of_the_same_sets_or_none():
    tent, base = (
        streams(cell_of(1, ood_set="average", method=method), WISHES)
        for method in ("tent", "zs-clip")
    )
    results = {run: record(run, 0.9) for [run] in tent}
    results |= {run: record(run, 0.8) for [run] in base}
    found = measuring.measure(tent, base, results, "acc_h_minus_zs-clip")
    assert found.mean == pytest.approx(10)
    for missing in (tent[0][0], base[0][0]):
        some = {run: record for run, record in results.items() if run != missing}
        part = measuring.measure(tent, base, some, "acc_h_minus_zs-clip")
        assert (math.isnan(part.mean), part.lacks[:11]) == (True, "3 of 4 sets")


def test_the_spread_of_a_difference_to_zs_clip_is_that_of_the_difference():
    two = replace(WISHES, seeds=(0, 1))
    tent, base = (
        streams(cell_of(1, ood_set="average", method=method), two) for method in ("tent", "zs-clip")
    )
    results = {run: record(run, 0.9 + 0.02 * run.stream.seed) for runs in tent for run in runs}
    results |= {run: record(run, 0.8 + 0.01 * run.stream.seed) for runs in base for run in runs}
    found = measuring.measure(tent, base, results, "acc_h_minus_zs-clip")
    assert (found.mean, found.std) == (pytest.approx(10.5), pytest.approx(math.sqrt(0.5)))


def comparison(measured, published, deviation, cell=None, **values):
    found = Measured(measured, **values)
    variance = Variance(deviation**2)
    return Comparison(cell or cell_of(10), "acc_h", found, PaperNumber(published), variance)


def test_every_number_but_times_and_memory_has_a_verdict():
    values = Measures(acc_s=0.7, acc_n=0.8, acc_h=0.74, auroc=0.9, fpr95=0.4)
    for table in (table for table in TABLES if table.is_measured):
        results = {
            run: replace(record(run, 0.74), accuracies=values, detection=values)
            for run in all_runs(WISHES, [table])
        }
        for found in measuring.compare(cells(table, PaperEncoder()), WISHES, results):
            expected = {UNKNOWN} if table.number == 4 else {WITHIN, OUTSIDE, MISPRINT}
            assert found.verdict in expected | {""}, (table.number, found.metric)
            assert found.verdict or math.isnan(found.difference)


def test_a_mean_over_parts_is_not_judged_where_one_of_its_sets_is_cut():
    table = find_table("10")
    whole = [
        Comparison(cell, metric, Measured(70.0), PaperNumber(71.0))
        for cell in cells(table, PaperEncoder())
        for metric in cell.metrics
    ]
    place = next(i for i, c in enumerate(whole) if c.cell.column == "Average")
    cut, others = whole[place], [*whole[:place], *whole[place + 1 :]]
    row = cut.cell.row
    cut = replace(cut, measured=Measured(70.0, miscounted=("'cifar10' (300 of 10,000 images)",)))
    means = aggregates.over_parts(table, [*others, cut])
    not_judged = [m for m in means if m.verdict == OTHER_IMAGES]
    assert {(m.cell.row, m.cell.column) for m in not_judged if m.metric != RANK} == {
        (row, "Average")
    }
    assert all(m in not_judged for m in means if m.metric == RANK)


def test_a_cell_is_judged_by_two_deviations_of_the_difference_and_rounding():
    assert comparison(90.204, 90.0, 0.1).verdict == WITHIN  # 0.2 and 0.005
    assert comparison(90.206, 90.0, 0.1).verdict == OUTSIDE
    assert comparison(89.794, 90.0, 0.1).verdict == OUTSIDE
    assert comparison(90.0, 90.0, math.nan).verdict == UNKNOWN
    assert comparison(math.nan, 90.0, 0.1, lacks="3 of 4 sets").verdict == ""
    assert comparison(90.0, math.nan, 0.1).verdict == ""


def test_the_spread_is_the_seeds_or_else_the_papers_for_the_same_runs():
    """Table 20 prints 83.53 ± 0.02 for Acc_S of ZS-CLIP, cifar10, svhn; tables 1 and 10 are one of
    its seeds, and table 10's Tent has 87.31 ± 0.30.
    """
    cell = cell_of(10, id_set="cifar10", ood_set="svhn", method="tent")
    run = streams(cell, WISHES)[0][0]
    found = measuring.compare([cell], WISHES, {run: record(run, 0.7)})
    assert found[0].deviation == pytest.approx(0.30 * math.sqrt(2))  # one seed against one
    five = replace(WISHES, seeds=(0, 1, 2, 3, 4))
    runs = streams(cell, five)[0]
    results = {run: record(run, 0.7 + 0.01 * i) for i, run in enumerate(runs)}
    found = measuring.compare([cell], five, results)
    std = math.sqrt(2.5)  # of 70, 71, 72, 73, 74 percent
    assert found[2].deviation == pytest.approx(std * math.sqrt(1 / 5 + 1))
    # Another L is another run: AdaND's ± of table 20 stands for it, of its eight streams.
    other = cell_of(22, id_set="cifar10", ood_set="svhn", setting="update_every=32")
    run = streams(other, WISHES)[0][0]
    [first, *_] = measuring.compare([other], WISHES, {run: record(run, 0.7)})
    stds = [c.numbers[0].std for c in printed(20) if c.method == "adand" and c.ood_set != "average"]
    usual = sum(std**2 for std in stds) / 8
    assert first.deviation == pytest.approx(math.sqrt(2 * usual))
    assert first.variance.freedom == pytest.approx(32)
    same = cell_of(22, id_set="cifar10", ood_set="svhn", setting="update_every=128")
    run = streams(same, WISHES)[0][0]
    found = measuring.compare([same], WISHES, {run: record(run, 0.7)})
    assert found[0].deviation == pytest.approx(0.16 * math.sqrt(2))  # 89.36 ± 0.16 in table 20


def test_a_misprint_is_compared_with_nothing():
    cell = cell_of(11, id_set="cifar100", method="tent", setting="batch_size=64", ratio=0.0)
    assert remark_on(cell.of, "acc_s").is_wrong
    one = replace(comparison(41.9, 41.9, 0.1, cell), metric="acc_s")
    assert one.verdict == comparing.MISPRINT


def test_time_is_a_test_samples_with_its_share_of_injected_images():
    sotta = streams(cell_of(4, method="sotta"), WISHES)
    results = {run: record(run, 0.5, seconds=2.0, items=100) for [run] in sotta}
    assert measuring.measure(sotta, (), results, "time_s").mean == pytest.approx(0.02)
    assert measuring.measure(sotta, (), results, "memory_gib").mean == pytest.approx(3)
    injected = {run: replace(one, counts={"id": 40, "ood": 40, "noise": 10})
                for run, one in results.items()}  # fmt: skip
    assert measuring.measure(sotta, (), injected, "time_s").mean == pytest.approx(2 / 80)


def test_ranks_share_a_tie_and_want_all_methods():
    svhn, lsun, average = (("x", name) for name in ("SVHN", "LSUN", "Average"))
    by_row = {
        ("a",): {(svhn, "acc_h"): 3.0, (average, "acc_h"): 0.0, (lsun, "acc_h"): 1.0},
        ("b",): {(svhn, "acc_h"): 2.0},
        ("c",): {(svhn, "acc_h"): 2.0, (svhn, "acc_s"): 9.0},
    }
    assert aggregates.mean_ranks(by_row) == {("a",): 1.0, ("b",): 2.5, ("c",): 2.5}


def test_the_papers_mean_ranks_are_those_of_its_figure():
    """Figure 2's violins are of 44 pairs: AdaND is 4th on CIFAR-100 against Places, else first."""
    ranks = []
    for number in (2, 3, 10):
        published = comparing.compare_published(cells(find_table(str(number)), PaperEncoder()))
        by_row = aggregates.values_by_row(published, lambda c: c.published.mean)
        ranks.append(aggregates.mean_ranks(by_row)[("AdaND (Ours)",)])
    assert ranks == [1.0, 1.0, (7 * 1 + 4) / 8]


def test_an_encoder_of_ones_own_is_beside_no_numbers_of_another():
    def published(number, **choice):
        found = cells(find_table(number), PaperEncoder(EncoderChoice(**choice)))
        return {cell.of.encoder for cell in found}, {bool(cell.published) for cell in found}

    assert published("10", model="RN50") == ({"RN50-openai"}, {False})
    assert published("10", folder="RN50-openai") == ({"RN50-openai"}, {False})
    assert published("10", folder="mine") == ({"mine"}, {True})
    assert published("10", folder="RN50-openai-amp") == ({"RN50-openai-amp"}, {False})
    assert published("10", folder="ViT-B-16-openai-amp") == ({"ViT-B-16-openai-amp"}, {True})
    assert published("10", precision="bf16") == ({"ViT-B-16-openai-bf16"}, {True})
    assert published("25", folder="mine") == ({"mine"}, {False})
    found = cells(find_table("25"), PaperEncoder(EncoderChoice("ViT-L-14")))
    assert len(found) == 25
    first = found[0]  # of the two parts of the table, the second
    assert (first.group, first.published[0]) == ("ViT-L-14-openai", PaperNumber(90.71))


def test_items_are_counted_of_the_sets_that_were_published_until_they_are_there(cached, tmp_path):
    [run] = streams(cell_of(10, id_set="cifar10", ood_set="svhn", method="tpt"), WISHES)[0]
    assert count_items(tmp_path, [run]) == 20_000
    [noisy] = streams(cell_of(10, id_set="cifar10", ood_set="svhn", method="adand"), WISHES)[0]
    assert count_items(tmp_path, [run, noisy]) == 20_000 + 22_500  # M = 8
    tiny = replace(run, encoder="tiny", id_set="shapes", ood_set="glyphs")
    assert count_items(tmp_path / "features", [tiny]) == 600
