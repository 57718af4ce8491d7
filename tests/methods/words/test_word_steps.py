"""The small steps of methods with negative words, worked by hand."""

import dataclasses

import numpy as np
import pytest
from streams import decide, near_words, of_features

from zsntta_cli.methods.words.neglabel import NegLabel
from zsntta_cli.methods.words.vocabulary import farthest
from zsntta_cli.settings import ThresholdSettings

NAMES = np.eye(2, 3, dtype=np.float32)  # the third axis is no class
ONE = ThresholdSettings(fixed=0.5)
FAR, NEAR, BETWEEN = (0, 0, 1), (1, 0, 0), (0, 0.6, 0.8)


def beside(images, *lists, injected=None, **texts):
    """Images beside the names and word lists, at a scale of 2."""
    words = np.array([word for words in lists for word in words], np.float32)
    return of_features(images, NAMES, 2.0, injected, words, tuple(map(len, lists)), **texts)


def neglabel(*lists, names=None, **values):
    """The share of the names for an image that is the far word, whose logits on them are 0."""
    data = beside([FAR], *lists, more_names=names)
    return decide("neglabel", data, ONE, **values)[0].id_score[0]


# --- NegLabel, CSP ------------------------------------------------------------------------------


def test_the_mean_of_a_group_counts_as_many_words_as_there_are_names():
    words = [FAR] * 3 + [(0, 0, -1)]
    by_sum, by_mean = (neglabel(words, groups=1, group_mass=mass) for mass in ("sum", "mean"))
    masses = 3 * np.exp(2) + np.exp(-2)
    assert by_sum == pytest.approx(2 / (2 + masses), rel=1e-6)
    assert by_mean == pytest.approx(2 / (2 + 2 * masses / 4), rel=1e-6)


@pytest.mark.parametrize(
    ("percentile", "too_near", "order"),
    [(0.0, None, [2, 3, 1, 0]), (1.0, None, [3, 0, 2, 1]), (1.0, 0.95, [3, 2, 1, 0]),
     (1.0, 0.7, [3, 2, 0, 1])],
)  # fmt: skip
def test_the_farthest_words_are_first_and_those_too_near_a_name_last(percentile, too_near, order):
    words = np.array([[0.96, 0, 0.28], [0.6, 0.8, 0], [0, 0, 1], [-0.96, 0.28, 0]], np.float32)
    # The nearest name's cosine: 0.96, 0.8, 0, 0.28; by the farther name's 0, 0.6, 0, -0.96.
    options = NegLabel.Settings(percentile=percentile, too_near=too_near)
    np.testing.assert_array_equal(farthest(words, NAMES, options), words[order])


def test_a_share_is_mined_of_each_list_separately():
    lists = [FAR, (-1, 0, 0), NEAR, NEAR], [NEAR, BETWEEN]
    # Half of each: both far words of the first list, and of the second the one that is farther.
    negatives = np.exp(2 * np.array([1, 0, 0.8])).sum()
    found = neglabel(*lists, mined_share=0.5, groups=1)
    assert found == pytest.approx(2 / (2 + negatives), rel=1e-5)
    # M of both: the two far words of the first list, none of the second.
    found = neglabel(*lists, negatives=2, groups=1)
    assert found == pytest.approx(2 / (2 + np.exp(2) + 1), rel=1e-5)


@pytest.mark.parametrize(
    ("words", "share", "mined"), [(20, 0.15, 3), (19, 0.15, 2), (100, 0.29, 29), (3, 0.15, 1)]
)
def test_a_share_is_rounded_down_to_a_word_or_more(words, share, mined):
    found = neglabel([FAR] * words, mined_share=share, groups=1)
    assert found == pytest.approx(2 / (2 + mined * np.exp(2)), rel=1e-5)


def test_random_groups_leave_the_remainder():
    share = {n: 2 / (2 + n * np.exp(2)) for n in (1, 2, 3)}
    ranked = neglabel([FAR] * 7, groups=3)  # of 3, 2 and 2 words
    assert ranked == pytest.approx((share[3] + 2 * share[2]) / 3, rel=1e-5)
    shuffled = neglabel([FAR] * 7, groups=3, grouping="random")  # of 2 words each
    assert shuffled == pytest.approx(share[2], rel=1e-5)
    found = neglabel([FAR] * 7, grouping="random")  # no more groups than words
    assert found == pytest.approx(share[1], rel=1e-5)


def test_class_names_may_have_another_prompt_than_the_runs():
    found = neglabel([NEAR], names=np.array([[0, 0, 1], [0, 1, 0]], np.float32))
    assert found == pytest.approx((np.exp(2) + 1) / (np.exp(2) + 2), rel=1e-5)


# --- AdaNeg -------------------------------------------------------------------------------------


def test_adaneg_by_hand():
    # Text alone: S = (e^2 + 1) / (e^2 + 2) = 0.904 and θ = 0.5, so that with a gap of 0.5 the image
    # at name 0 is surely ID; its row's proxy is that very image, and S on proxies is the same.
    data = beside([[1, 0, 0], [0.6, 0.8, 0]], [FAR])
    found, _ = decide("adaneg", data, ONE, groups=1)
    by_text = (np.exp(2) + 1) / (np.exp(2) + 2)
    assert found.id_score[0] == pytest.approx(by_text, rel=1e-6)
    # The second enters beside name 1, whose proxy is then the unit mean of (0, 1) and (0.6, 0.8).
    masses = np.exp(2 * 0.6) + np.exp(2 * 1.8 / np.hypot(0.6, 1.8))
    by_text = np.exp(1.2) + np.exp(1.6)
    expected = masses / (masses + 1) + 0.1 * by_text / (by_text + 1)
    assert found.id_score[1] == pytest.approx(expected / 1.1, rel=1e-6)


def test_adaneg_takes_known_noise_for_noise_whatever_it_looks_like():
    images = [[1, 0, 0], [0.9, 0, 0.2]]
    one, other = (
        decide("adaneg", beside(images, [FAR], injected=[k, False]), ONE, groups=1)[0]
        for k in (False, True)
    )
    assert other.id_score[1] < one.id_score[1] - 0.1


# --- TANL, DDE ----------------------------------------------------------------------------------


def test_tanl_by_hand():
    # The names activate the words 1 by e^0 / (e^2 + 3) each, word 0 as much: the first is taken.
    data = beside([FAR, FAR], [[0, 0, -1], FAR], injected=[True, False])
    found, _ = decide("tanl", data, ONE, tanl_words=1)
    # Known noise activates word 1, which is what the second item is held against.
    expected = [2 / (2 + np.exp(-2)), 2 / (2 + np.exp(2))]
    np.testing.assert_allclose(found.id_score, expected, rtol=1e-6)
    assert found.is_noise.tolist() == [False, True]


def test_dde_learns_known_noise_as_no_class():
    data = near_words(7, items=300)
    features = data.features().copy()
    features[data.injected] *= -1  # other noise: scores change by it, classes may not
    kept, queue = {"batch_size": 30, "dde_words": 5}, ThresholdSettings(queue=64)
    other = dataclasses.replace(data, image_features=features)
    first, second = (decide("dde", d, queue, **kept)[0] for d in (data, other))
    test = ~data.injected
    np.testing.assert_array_equal(first.class_index[test], second.class_index[test])
    assert (first.id_score[test] != second.id_score[test]).any()


def test_ddes_exact_threshold_is_the_lowest_score_of_otsus_upper_group():
    data, queue = near_words(7, items=300), ThresholdSettings(queue=64)
    found, _ = decide("dde", data, queue, batch_size=30, dde_words=5)
    u, own = 1 - found.id_score, found.detector_threshold
    for end in range(30, 301, 30):
        last = u[max(end - 64, 0) : end]
        sides = [(last[last < edge], last[last >= edge]) for edge in np.unique(last)[1:]]
        within = [sum(len(side) * side.var() for side in both) for both in sides]
        assert own[end - 1] == pytest.approx(sides[int(np.argmin(within))][1].min())
    assert np.array_equal(found.is_noise, u > own - 1e-12)


def test_ddes_exact_threshold_is_one_of_two_neighbouring_numbers():
    rng = np.random.default_rng(10)
    words = rng.normal(size=(5, 3)) * [0.05, 0.05, 1]
    words[:, 2] = abs(words[:, 2])
    images = words[rng.integers(5, size=60)] + 0.01 * rng.normal(size=(60, 3))
    data = of_features(images, NAMES, 40.0, None, words.astype(np.float32), (5,))
    found, _ = decide("dde", data, ThresholdSettings(queue=64), batch_size=5, dde_words=5)
    assert set(found.detector_threshold) <= {0.5, *(1 - found.id_score)}
