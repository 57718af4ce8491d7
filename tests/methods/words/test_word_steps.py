"""The small steps of methods with negative words, worked by hand."""

import numpy as np
import pytest
from streams import decide, of_features

from zsntta_cli.methods.words.vocabulary import mine_negatives
from zsntta_cli.settings import ThresholdSettings

NAMES = np.eye(2, 3, dtype=np.float32)  # the third axis is no class
ONE = ThresholdSettings(fixed=0.5)


def beside(images, words, scale=2.0, injected=None):
    return of_features(images, NAMES, scale, injected, words, (len(words),))


# --- NegLabel, CSP ------------------------------------------------------------------------------


def test_the_mean_of_a_group_counts_as_many_words_as_there_are_names():
    data = beside([[0, 0, 5]], [[0, 0, 1]] * 3 + [[0, 0, -1]])
    by_sum, by_mean = (
        decide("neglabel", data, ONE, groups=1, group_mass=mass)[0].id_score[0]
        for mass in ("sum", "mean")
    )
    masses = 3 * np.exp(2) + np.exp(-2)
    assert by_sum == pytest.approx(2 / (2 + masses), rel=1e-6)
    assert by_mean == pytest.approx(2 / (2 + 2 * masses / 4), rel=1e-6)


def test_words_too_near_a_name_are_mined_last():
    words = np.array([[0.96, 0, 0.28], [0.6, 0.8, 0], [0, 0, 1], [-0.96, 0.28, 0]], np.float32)
    # The nearest name's cosine: 0.96, 0.8, 0, 0.28; by the farther name's 0, 0.6, 0, -0.96.
    assert mine_negatives(words, NAMES, 4, 0.0).tolist() == [2, 3, 1, 0]
    assert mine_negatives(words, NAMES, 4, 1.0).tolist() == [3, 0, 2, 1]
    assert mine_negatives(words, NAMES, 4, 1.0, too_near=0.95).tolist() == [3, 2, 1, 0]
    assert mine_negatives(words, NAMES, 4, 1.0, too_near=0.7).tolist() == [3, 2, 0, 1]


# --- AdaNeg -------------------------------------------------------------------------------------


def test_adaneg_by_hand():
    # Text alone: S = (e^2 + 1) / (e^2 + 2) = 0.904 and θ = 0.5, so that with a gap of 0.5 the image
    # at name 0 is surely ID; its row's proxy is that very image, and S on proxies is the same.
    data = beside([[1, 0, 0], [0.6, 0.8, 0]], [[0, 0, 1]])
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
        decide("adaneg", beside(images, [[0, 0, 1]], injected=[k, False]), ONE, groups=1)[0]
        for k in (False, True)
    )
    assert other.id_score[1] < one.id_score[1] - 0.1


# --- TANL ---------------------------------------------------------------------------------------


def test_tanl_by_hand():
    # The names activate the words 1 by e^0 / (e^2 + 3) each, word 0 as much: the first is taken.
    data = beside([[0, 0, 1], [0, 0, 1]], [[0, 0, -1], [0, 0, 1]], injected=[True, False])
    found, _ = decide("tanl", data, ONE, tanl_words=1)
    # Known noise activates word 1, which is what the second item is held against.
    expected = [2 / (2 + np.exp(-2)), 2 / (2 + np.exp(2))]
    np.testing.assert_allclose(found.id_score, expected, rtol=1e-6)
    assert found.is_noise.tolist() == [False, True]


# --- all of them --------------------------------------------------------------------------------
