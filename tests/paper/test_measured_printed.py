"""Which runs a number stands for, and what is made of their results: hand-worked numbers."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from zsntta_cli.paper.compare import Number, compare, explained
from zsntta_cli.paper.runs import Wishes, cells
from zsntta_cli.paper.tables import AVERAGE, TABLES, Place, Printed
from zsntta_cli.results.frame import fold
from zsntta_cli.simulation.metrics import Measures
from zsntta_cli.simulation.notes import OTHER_IMAGES, RunNote
from zsntta_cli.simulation.record import Record

WISHES = Wishes(Path("features"))


def cell_of(
    number, row, wishes=WISHES, id_set="cifar10", ood_set=AVERAGE, ratio=0.5, encoder="ViT-B-16"
):
    place = Place(encoder, id_set, row, ratio, ood_set)
    [cell] = [one for one in cells(TABLES[number], wishes) if one.place == place]
    return cell


def streams_of(number, row, *wishes, **values):
    return cell_of(number, row, *wishes, **values).streams


def record(run, acc_h, notes=()):
    return Record(
        settings=run, accuracies=Measures(acc_s=0.5, acc_n=0.6, acc_h=acc_h),
        detection=Measures(auroc=0.9, fpr95=0.1, aupr=0.8), seconds=2.0,
        counts={"id": 100, "ood": 0, "noise": 0}, digests={}, versions={}, notes=notes,
    )  # fmt: skip


def number_at(cell, metric, records):
    found = compare([cell], {one.settings: one for one in records})
    return next(one for one in found if one.metric == metric)


def test_an_average_is_of_the_partners_and_a_clean_stream_is_one():
    runs = [run for seeds in streams_of(19, "AdaND", ratio=0.25) for run in seeds]
    assert [run.ood_set for run in runs] == ["svhn", "lsun", "texture", "places"]
    assert {(run.encoder, run.stream.ratio) for run in runs} == {("ViT-B-16-openai", 0.25)}
    [[clean]] = streams_of(19, "AdaND", ratio=0.0)
    assert (clean.ood_set, clean.stream.noise) == (None, "gaussian")


def test_corruptions_are_fifteen_streams_of_severity_one():
    found = streams_of(15, "ZS-CLIP", id_set="imagenet-c", ood_set="inaturalist")
    names = {seeds[0].id_set for seeds in found}
    assert len(names) == 15
    assert all(name.startswith("imagenet-c:") and name.endswith(":1") for name in names)


def test_rows_are_run_with_their_settings():
    def only(number, row, **values):
        return streams_of(number, row, **values)[0][0]

    assert only(22, "L = 32").options.update_every == 32
    assert only(23, "N_q = 64").threshold.queue == 64
    assert only(11, "Tent (bs=1)").options.batch_size == 1
    assert only(26, "Noise Detector").options.pseudo_labels == "detector"
    imagenet = {"id_set": "imagenet"}
    assert only(13, "AdaND without Gaussian noise", **imagenet).stream.noise == "none"
    assert only(1, "TPT (GT)").options.pipeline == "gt"
    assert only(25, "AdaND", encoder="RN50").encoder == "RN50-openai"
    assert only(5, "MCM", **imagenet).options.temperature == 1.0
    assert not streams_of(5, "NegLabel", **imagenet)  # it needs more than features
    assert len(streams_of(20, "Tent")[0]) == 5
    assert len(streams_of(20, "Tent", replace(WISHES, seeds=(3,)))[0]) == 1


def test_every_printed_number_has_its_place():
    for table in TABLES.values():
        printed = {cell.place for cell in cells(table, WISHES) if cell.printed}
        assert printed == set(table.printed)


def test_means_of_sets_by_seed_and_both_spreads():
    two = replace(WISHES, seeds=(0, 1))
    cell = cell_of(20, "ZS-CLIP", two)
    values = [(0.80, 0.82), (0.90, 0.90), (0.70, 0.74), (0.62, 0.60)]
    records = [
        record(run, h)
        for runs, some in zip(cell.streams, values, strict=True)
        for run, h in zip(runs, some, strict=True)
    ]
    found = number_at(cell, "acc_h", records)
    # By seed 75.5 and 76.5; the sets' deviations are √2 times 1, 0, 2 and 1.
    assert found.measured.mean == pytest.approx(76)
    assert found.measured.std == pytest.approx(math.sqrt(0.5))
    assert found.sets_std == pytest.approx(math.sqrt(2))
    assert found.difference == pytest.approx(76 - found.printed.value)
    # Of the last set a seed is missing: those that all sets have are averaged; then the whole set.
    part = number_at(cell, "acc_h", records[:-1])
    assert part.measured.mean == pytest.approx((80 + 90 + 70 + 62) / 4)
    assert [*part.measured.by_seed] == [0]
    lacking = number_at(cell, "acc_h", records[:-2])
    assert lacking.measured.lacks.startswith("3 of 4 sets")
    assert math.isnan(lacking.difference)
    assert number_at(cell, "acc_h", []).measured is None


def test_a_lead_is_the_difference_of_the_same_sets_and_seeds_or_none():
    two = replace(WISHES, seeds=(0, 1))
    cell = cell_of(1, "Tent (GT)", two)
    tent = [run for of in cell.streams for run in of]
    base = [run for of in streams_of(1, "ZS-CLIP", two) for run in of]
    records = [record(run, 0.9 + 0.02 * run.stream.seed) for run in tent]
    records += [record(run, 0.8 + 0.01 * run.stream.seed) for run in base]
    lead = number_at(cell, "acc_h_lead", records).measured
    assert (lead.mean, lead.std) == (pytest.approx(10.5), pytest.approx(math.sqrt(0.5)))
    for missing in (tent[:2], base[:2]):
        some = [one for one in records if one.settings not in missing]
        part = number_at(cell, "acc_h_lead", some).measured
        assert (math.isnan(part.mean), part.lacks[:11]) == (True, "3 of 4 sets")


def test_the_most_that_seeds_explain_by_hand():
    """Student's t is 2.776 of 4 degrees of freedom and 2.306 of 8."""
    nan = math.nan
    once = 2.776 * 0.3 * math.sqrt(1 / 5 + 1) + 0.005
    assert explained(0.3, 5, nan, 1) == pytest.approx(once, abs=1e-3)
    pooled = math.sqrt((4 * 0.3**2 + 4 * 0.1**2) / 8)
    both = 2.306 * pooled * math.sqrt(2 / 5) + 0.005
    assert explained(0.3, 5, 0.1, 5) == pytest.approx(both, abs=1e-3)
    theirs = 2.776 * 0.1 * math.sqrt(1 + 1 / 5) + 0.005
    assert explained(nan, 1, 0.1, 5) == pytest.approx(theirs, abs=1e-3)
    assert math.isnan(explained(nan, 1, nan, 1))
    # The printed ± of an average is the mean of its sets' deviations, so it is none of a mean.
    one_seed = fold({0: 90.0})
    is_known = [
        not math.isnan(Number(cell, "acc_h", Printed(90, 0.1), one_seed).most)
        for cell in (cell_of(20, "Tent", ood_set=name) for name in (AVERAGE, "svhn"))
    ]
    assert is_known == [False, True]


def test_five_seeds_mark_five_percent_of_perfect_reproductions_of_one_printed_run():
    """Of normal distributions, of which the printed value and ours are drawn alike."""
    cell, values = (
        cell_of(10, "AdaND", ood_set="svhn"),
        np.random.default_rng(0).normal(70, 1, (3_000, 6)),
    )
    marked = [
        Number(cell, "acc_h", Printed(round(printed, 2)), fold(dict(enumerate(ours)))).is_beyond
        for printed, *ours in values
    ]
    assert 0.03 < np.mean(marked) < 0.055


def test_misprints_and_other_images_are_not_marked():
    cell, seeds = cell_of(10, "Tent"), fold({0: 89.9, 1: 90, 2: 90.1})
    marked = Number(cell, "acc_n", Printed(80.0), seeds)
    assert marked.is_beyond
    assert not replace(marked, printed=Printed(80.0, remark="misprint: it is 90")).is_beyond
    [[run], *_] = cell.streams
    others = record(run, 0.9, (RunNote(OTHER_IMAGES, "svhn", "3 images"),))
    assert not replace(marked, records=(others,)).is_beyond
