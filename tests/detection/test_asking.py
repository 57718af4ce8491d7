"""What to ask about, and what answers say: the hypotheses by hand."""

import numpy as np
import pytest

from zsntta_cli.detection.asking import (
    accuracy_by_rank,
    expected_accuracy,
    grid,
    most_telling,
    prior,
    updated,
)

HALF = int(np.abs(grid().rank - 0.5).argmin())  # the rank in the middle


def hypothesis(share, power):
    return int(np.flatnonzero((grid().share == share) & (grid().power == power))[0])


def two(first=0.5):
    """Nothing but "no noise" or half of it, whose score is shifted by 2, is thought possible."""
    weight = np.zeros(len(grid().share))
    weight[0], weight[hypothesis(0.5, 2.0)] = first, 1 - first
    return weight


def test_where_both_densities_cross_half_of_it_is_noise():
    # Half noise at N(2, 1), half clean at N(0, 1): the middle of the folder is at 1, where both
    # are as dense.
    assert grid().chance[hypothesis(0.5, 2.0), HALF] == pytest.approx(0.5, abs=0.005)
    # Above 2 lie half of the noise and Phi(-2) of the clean; at 2, noise to clean is as e^2 to 1.
    above = 0.5 * 0.5 + 0.5 * 0.022750
    at = int(np.abs(grid().rank - above).argmin())
    expected = np.exp(2) / (1 + np.exp(2))
    assert grid().chance[hypothesis(0.5, 2.0), at] == pytest.approx(expected, abs=0.005)


def test_chances_add_up_to_the_share_of_noise():
    rank = grid().rank
    width = np.diff(np.r_[0, (rank[1:] + rank[:-1]) / 2, 1])
    np.testing.assert_allclose(grid().chance[1:] @ width, grid().share[1:], rtol=0.04)
    assert (grid().chance[0] == 1e-3).all()
    assert (np.diff(grid().chance, axis=1) <= 0).all(), "the most suspicious are likeliest noise"


def test_an_answer_is_weighed_by_bayes_rule():
    chance = grid().chance[hypothesis(0.5, 2.0), HALF]
    noise, clean = updated(two(), HALF, True), updated(two(), HALF, False)
    assert noise[0] == pytest.approx(0.001 / (0.001 + chance))
    assert clean[0] == pytest.approx(0.999 / (0.999 + 1 - chance))
    assert noise.sum() == pytest.approx(1)
    again = updated(updated(two(0.2), 3, True), 90, False)
    np.testing.assert_allclose(again, updated(updated(two(0.2), 90, False), 3, True))


def information(weight, *cells):
    """Mutual information of answers at some ranks with the hypotheses, by all their patterns."""
    chance = grid().chance[:, list(cells)]
    joint = np.ones((1, len(weight))) * weight
    for column in chance.T:
        joint = np.concatenate([joint * column, joint * (1 - column)])
    patterns = joint.sum(1)
    with np.errstate(all="ignore"):
        terms = joint * np.log(joint / (patterns[:, None] * weight))
    return np.nansum(terms)


def test_the_question_is_what_says_most_and_the_next_one_whatever_it_is_answered():
    weight, cells = prior(0.3, 0.2), grid().cells(40)
    first, second = most_telling(weight, cells, 2)
    alone = [information(weight, cell) for cell in cells]
    assert first == int(np.argmax(alone))
    both = [information(weight, cells[first], c) if i != first else 0 for i, c in enumerate(cells)]
    assert second == int(np.argmax(both))


def test_of_images_that_say_as_much_the_most_suspicious_is_asked_about():
    assert most_telling(two(), np.array([7, 7, 7]), 2) == [0, 1]


def test_no_more_is_asked_than_there_is():
    assert sorted(most_telling(two(), grid().cells(3), 9)) == [0, 1, 2]
    assert most_telling(two(), grid().cells(0), 9) == []


def test_a_plan_does_not_end_where_patterns_are_dropped():
    chosen = most_telling(prior(0, 0.2), grid().cells(200), 12)  # of 4,096 patterns 64 are kept
    assert len(set(chosen)) == 12


def test_without_noise_the_accuracy_is_what_is_left_of_the_right_ones():
    weight = np.zeros(len(grid().share))
    weight[0] = 1
    accuracy = expected_accuracy(weight, np.full(len(grid().rank), 0.8))
    assert accuracy[HALF] == pytest.approx(0.8 * 0.5, abs=0.005)
    assert accuracy.argmax() == 0


def test_with_noise_it_is_the_harmonic_mean_of_both():
    weight = np.zeros(len(grid().share))
    weight[hypothesis(0.5, 2.0)] = 1
    accuracy = expected_accuracy(weight, np.ones(len(grid().rank)))
    chance = grid().chance[hypothesis(0.5, 2.0)]
    width = np.diff(np.r_[0, (grid().rank[1:] + grid().rank[:-1]) / 2, 1])
    found = (chance * width)[: HALF + 1].sum() / (chance * width).sum()
    kept = ((1 - chance) * width)[HALF + 1 :].sum() / ((1 - chance) * width).sum()
    assert accuracy[HALF] == pytest.approx(2 * found * kept / (found + kept))
    assert found == pytest.approx(0.8413, abs=0.01), "Phi(1)"


def test_what_is_believed_before_the_first_answer():
    for evidence, none in ((0, 0.35), (1, 0.02), (0.5, 0.185)):
        weight = prior(evidence, 0.1)
        assert weight.sum() == pytest.approx(1)
        assert weight[0] == pytest.approx(none)
    far = prior(1, 0.1)[1:]
    assert grid().share[1:][far.argmax()] == 0.1
    assert far[grid().power[1:] >= 3].sum() > 0.7


def test_the_accuracy_of_classes_is_smoothed_and_unbiased_at_the_ends():
    flat = accuracy_by_rank(np.full(200, 0.6))
    np.testing.assert_allclose(flat, 0.6)
    few = accuracy_by_rank(np.array([0.2, 0.4]))
    assert few[HALF] == pytest.approx(0.3, abs=0.005), "of few images none is smoothed"
