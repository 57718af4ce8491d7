"""What corrections say: counts by hand, intervals by hand and by SciPy."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from zsntta_cli.report.review.corrections import Correction
from zsntta_cli.report.review.judging import (
    Share,
    between_both,
    judgement,
    notes,
    table,
    wilson,
)

LABELLED = [
    Correction(False, None, False, "cat"),  # right, of the class that was said
    Correction(False, "cat", False, "cat"),  # right
    Correction(False, "dog", False, "cat"),  # the class is wrong
    Correction(False, "cat", True, "cat"),  # called noise
    Correction(True, None, True, "cat"),  # found
    Correction(True, None, True, "dog"),  # found
    Correction(True, None, False, "dog"),  # missed
]


def test_counts_by_hand():
    found = judgement(LABELLED)
    assert found.acc_s == (2, 4)
    assert found.acc_n == (2, 3)
    assert found.precision == (2, 3)
    assert found.assumed == 1
    assert found.acc_h == pytest.approx(2 * (1 / 2) * (2 / 3) / (1 / 2 + 2 / 3))


def test_a_clean_one_called_noise_is_wrong_whatever_its_class():
    found = judgement([Correction(False, None, True, "cat")])
    assert (found.acc_s, found.assumed, found.precision) == ((0, 1), 0, (0, 1))


def test_an_interval_by_hand():
    # p = 0.84, n = 50, z = 1.95996: (0.84 + 0.0384146 ± 0.1086354) / 1.0768292
    assert wilson(Share(42, 50)) == pytest.approx((0.714856, 0.916627), abs=2e-6)


@pytest.mark.parametrize(("right", "of"), [(0, 1), (1, 1), (0, 9), (3, 9), (9, 9), (997, 1000)])
def test_intervals_are_those_of_scipy(right, of):
    expected = binomtest(right, of).proportion_ci(0.95, method="wilson")
    assert wilson(Share(right, of)) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= wilson(Share(right, of)).low <= right / of <= wilson(Share(right, of)).high <= 1


def test_nothing_labelled_has_no_figure():
    found = judgement([Correction(True, None, False, "cat")])
    assert math.isnan(found.acc_s.value)
    assert math.isnan(found.acc_h)
    assert math.isnan(found.precision.value)
    assert all(map(math.isnan, wilson(found.acc_s)))
    lines = table(found).splitlines()
    assert lines[1].split() == ["Acc_S", "–", "–", "0", "of", "0"]
    assert lines[3].split() == ["Acc_H", "–", "–"]


def test_the_interval_of_acc_h_covers_as_often_as_it_says():
    generator = np.random.default_rng(0)
    truth = 2 * 0.9 * 0.7 / 1.6
    draws = zip(generator.binomial(40, 0.9, 2000), generator.binomial(25, 0.7, 2000), strict=True)
    found = [between_both(Share(int(s), 40), Share(int(n), 25)) for s, n in draws]
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.95
    assert np.mean([one.high - one.low for one in found]) < 0.35


def test_the_table_and_what_is_said_beside_it():
    found = judgement(LABELLED)
    assert table(found).splitlines() == [
        "                %    95 % interval",
        "Acc_S       50.00    15.00 – 85.00  2 of 4",
        "Acc_N       66.67    20.77 – 93.85  2 of 3",
        f"Acc_H       57.14    {100 * between_both(found.acc_s, found.acc_n).low:.2f} – "
        f"{100 * between_both(found.acc_s, found.acc_n).high:.2f}",
        "precision   66.67    20.77 – 93.85  2 of 3",
    ]
    said = list(notes(found, 3))
    assert said[0].startswith("7 images labelled, 4 clean and 3 noise. The figures describe these")
    assert said[1].startswith("1 image labelled clean without another class:")
    assert said[2].startswith("3 of the lines gave way")
    assert len(list(notes(judgement([LABELLED[1]]), 0))) == 1
