"""Which runs a cell stands for, and what is made of their results: hand-worked numbers."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from paper_cells import cell_of

from zsntta_cli.methods import METHODS
from zsntta_cli.paper import measuring
from zsntta_cli.paper.cells import PaperEncoder, cells
from zsntta_cli.paper.comparing import Comparison, Measured
from zsntta_cli.paper.printed.published import AVERAGE, PaperNumber, remark_on
from zsntta_cli.paper.printed.tables import TABLES, find_table
from zsntta_cli.paper.runs import Wishes, all_runs, count_items, streams
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation.metrics import Measures
from zsntta_cli.simulation.record import Record

WISHES = Wishes(Path("features"))


def record(run, acc_h):
    return Record(
        settings=run, accuracies=Measures(acc_s=0.5, acc_n=0.6, acc_h=acc_h),
        detection=Measures(auroc=0.9, fpr95=0.1, aupr=0.8), seconds=2.0,
        counts={"id": 100, "ood": 0, "noise": 0}, digests={}, versions={},
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
    assert only(5, method="mcm").options.temperature == 1.0
    assert streams(cell_of(5, method="neglabel"), WISHES) == ()
    assert len(streams(cell_of(20), WISHES)[0]) == 5
    assert len(streams(cell_of(20), replace(WISHES, seeds=(3,)))[0]) == 1


def test_all_tables_are_so_many_runs():
    """A clean stream is one for all OOD sets."""
    assert sum(len(all_runs(WISHES, [table])) for table in TABLES) == 3557
    every = all_runs(WISHES)
    assert len(every) == 2026
    assert sum(METHODS[run.method].live for run in every) == 919


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


def test_the_most_that_seeds_explain_by_hand():
    """Student's t is 2.776 of 4 degrees of freedom and 2.306 of 8."""

    def most(table, published, ood_set="svhn", **values):
        cell = cell_of(table, id_set="cifar10", ood_set=ood_set, method="zs-clip")
        return Comparison(cell, "acc_h", Measured(90.0, **values), PaperNumber(*published)).most

    five = {"std": 0.3, "seeds": (0, 1, 2, 3, 4)}
    once = 2.776 * 0.3 * math.sqrt(1 / 5 + 1) + 0.005
    assert most(10, (90,), **five) == pytest.approx(once, abs=1e-3)
    pooled = math.sqrt((4 * 0.3**2 + 4 * 0.1**2) / 8)
    both = 2.306 * pooled * math.sqrt(2 / 5) + 0.005
    assert most(20, (90, 0.1), **five) == pytest.approx(both, abs=1e-3)
    theirs = 2.776 * 0.1 * math.sqrt(1 + 1 / 5) + 0.005
    assert most(20, (90, 0.1)) == pytest.approx(theirs, abs=1e-3)
    # The printed ± of an average is the mean of its sets' deviations.
    average = 2.776 * 0.3 * math.sqrt(2 / 5) + 0.005
    assert most(20, (90, 9.0), AVERAGE, **five) == pytest.approx(average, abs=1e-3)
    assert math.isnan(most(20, (90, 9.0), AVERAGE))
    assert math.isnan(most(10, (90,)))


def test_five_seeds_mark_five_percent_of_perfect_reproductions_of_one_printed_run():
    """Of normal distributions, of which the printed value and ours are drawn alike."""
    cell, times = cell_of(10, id_set="cifar10", ood_set="svhn", method="adand"), 3_000
    runs = streams(cell, replace(WISHES, seeds=(0, 1, 2, 3, 4)))
    values = np.random.default_rng(0).normal(0.7, 0.01, (times, 6))
    marked = 0
    for printed_value, *ours in values:
        results = {run: record(run, h) for run, h in zip(runs[0], ours, strict=True)}
        measured = measuring.measure(runs, (), results, "acc_h")
        number = PaperNumber(round(100 * printed_value, 2))
        marked += Comparison(cell, "acc_h", measured, number).is_beyond_seeds
    assert 0.03 < marked / times < 0.055


def test_misprints_and_other_images_are_not_marked():
    cell = cell_of(11, id_set="cifar100", method="tent", setting="batch_size=64", ratio=0.0)
    assert remark_on(cell.of, "acc_s").is_wrong
    seeds = Measured(90.0, 0.1, seeds=(0, 1, 2, 3, 4))
    marked = Comparison(cell, "acc_n", seeds, PaperNumber(80.0))
    assert marked.is_beyond_seeds
    assert not replace(marked, metric="acc_s").is_beyond_seeds
    others = replace(seeds, miscounted=("'svhn' (3 images)",))
    assert not replace(marked, measured=others).is_beyond_seeds
    assert not replace(marked, measured=Measured(math.nan)).is_beyond_seeds


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
