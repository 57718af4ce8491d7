import made
import numpy as np
import pytest
from streams import of_features

from zsntta_cli.methods.scores import logit_gap
from zsntta_cli.simulation.runs import build_run

# Two classes along the first two axes; the third is no class.
TEXT = np.eye(2, 3, dtype=np.float32)
IMAGES = np.array([[1, 0, 0], [0, 2, 0], [0.6, 0, 0.8], [0, 0, 5]], np.float32)
SCALE = 2.0


def scores(method, more_text=None, **values):
    data = of_features(IMAGES, TEXT, SCALE, words=more_text).part(np.array([3, 0, 1, 2, 0]))
    decisions = made.decisions(data, build_run(method, "", "", None, "", **values))
    assert (decisions.is_noise is None) == (method != "neglabel")
    assert decisions.id_score[1] == decisions.id_score[4], "one image, one score"
    return decisions.id_score


def test_max_logit_by_hand():
    np.testing.assert_allclose(scores("max-logit")[:4], [0, 2, 2, 1.2], atol=1e-6)


def test_energy_by_hand():
    expected = [np.log(2), np.log(np.e**2 + 1), np.log(np.e**2 + 1), np.log(np.e**1.2 + 1)]
    np.testing.assert_allclose(scores("energy")[:4], expected, rtol=1e-6)


def test_logit_gap_by_hand():
    np.testing.assert_allclose(scores("logitgap")[:4], [0, 2, 2, 1.2], atol=1e-6)  # of two classes
    logits = np.array([[5, 1, 4, 3, -9], [2, 2, 2, 2, 2]], np.float32)
    for others, expected in ((1, [1, 0]), (2, [1.5, 0]), (4, [5.25, 0]), (9, [5.25, 0])):
        np.testing.assert_allclose(logit_gap(logits, others), expected, atol=1e-6)
    np.testing.assert_allclose(logit_gap(logits[:, :1], 3), [5, 2])


def test_mcm_by_hand_at_its_own_temperature_and_others():
    """Its own is one over the logit scale."""
    np.testing.assert_allclose(scores("mcm")[:2], [0.5, 1 / (1 + np.exp(-2))], rtol=1e-6)
    np.testing.assert_array_equal(scores("mcm"), scores("mcm", temperature=1 / SCALE))
    expected = np.exp(0.6) / (np.exp(0.6) + 1)
    assert scores("mcm", temperature=1.0)[3] == pytest.approx(expected, rel=1e-6)


def test_neglabel_by_hand():
    negative = np.array([[0, 0, 1]], np.float32)
    # Image 3 is the negative word: e^0 + e^0 against e^2.
    expected = 2 / (2 + np.e**2)
    assert scores("neglabel", negative)[0] == pytest.approx(expected, rel=1e-5)


def test_clipn_by_hand():
    no = np.array([[0, 0, 1], [0, 0, 1]], np.float32)
    # Image 3 is as near to both classes (0) and says no (2) to both.
    assert scores("clipn", no)[0] == pytest.approx(1 / (1 + np.exp(2)), rel=1e-5)
