"""A run by class, by hand and as the command shows it."""

import csv

import numpy as np
import pytest

from zsntta_cli.report.tables import class_rows
from zsntta_cli.simulation.metrics import Judged

NAMES = ("cat", "dog", "ox")
LABELS = np.array([0, 0, 0, 0, 1, 1, -1, -1, -1])
CLASSES = np.array([0, 0, 1, 2, 1, 1, 2, 2, 0])
NOISE = np.array([0, 1, 1, 0, 0, 0, 1, 1, 0], bool)


def test_each_class_and_the_ood_samples_by_hand():
    cat, dog, ood = class_rows(NAMES, Judged(LABELS, CLASSES, NOISE, np.zeros(9)))
    assert cat == {
        "class": "cat", "images": 4, "accuracy": 0.5, "called_noise": 0.5,
        "confused_with": "dog", "confused": 0.25,
    }  # fmt: skip
    assert (dog["accuracy"], dog["called_noise"], dog["confused_with"]) == (1, 0, None)
    assert (ood["class"], ood["images"], ood["accuracy"]) == ("(OOD)", 3, None)
    assert (ood["called_noise"], ood["confused_with"]) == (pytest.approx(2 / 3), "ox")
    undecided = class_rows(NAMES, Judged(LABELS, CLASSES, None, np.zeros(9)))
    assert [row["called_noise"] for row in undecided] == [None] * 3


def test_the_report_has_a_row_for_each_class_whose_mean_is_the_tables(simulate):
    run = ("--method", "zs-clip", "--id", "pets", "--ood", "sky", "--report")
    assert "zs-clip on pets against sky, by class" in simulate(*run, "classes").stdout
    rows = [*csv.DictReader(simulate(*run, "classes", "--format", "csv").stdout.splitlines())]
    [whole] = csv.DictReader(simulate(*run, "open-set", "--format", "csv").stdout.splitlines())
    ood = rows.pop()
    right = sum(float(row["accuracy"]) * int(row["images"]) for row in rows)
    images = sum(int(row["images"]) for row in rows)
    assert right / images == pytest.approx(float(whole["id_accuracy"]))
    assert float(ood["called_noise"]) == pytest.approx(float(whole["acc_n"]))
