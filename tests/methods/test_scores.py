"""Zero-shot scores, and the methods that are a score alone, by hand."""

import numpy as np
import pytest
from streams import decide, of_features

from zsntta_cli.methods.scores import cosine_logits, logit_gap, unit, zero_shot
from zsntta_cli.settings import ThresholdSettings

TEXT = np.eye(2, dtype=np.float32)


def test_cosines_by_hand_whatever_the_norm():
    logits = cosine_logits(np.array([[3.0, 4.0], [0.3, 0.4]]), TEXT, 10)
    np.testing.assert_allclose(logits, [[6, 8], [6, 8]], rtol=1e-6)


@pytest.mark.parametrize("classes", [1, 7, 24, 200])
def test_scores_of_an_image_hardly_depend_on_the_images_beside_it(classes):
    """With AVX-512 not in a bit; elsewhere BLAS may add up products of another size otherwise."""
    rng = np.random.default_rng(classes)
    text, features = unit(rng.normal(size=(classes, 96))), rng.normal(size=(1100, 96))
    np.testing.assert_allclose(
        cosine_logits(features, text.astype(np.float32), 100.0), 100 * unit(features) @ text.T,
        atol=1e-4,
    )  # fmt: skip
    whole = zero_shot(features, text.astype(np.float32), 100.0)
    for part in (slice(0, 1), slice(1, 3), slice(30, 94), slice(1000, 1100)):
        few = vars(zero_shot(features[part], text.astype(np.float32), 100.0))
        for name, column in vars(whole.part(part)).items():
            np.testing.assert_allclose(few[name], column, atol=1e-4, err_msg=name)


def test_a_zero_feature_has_no_opinion():
    result = zero_shot(np.zeros((1, 2), np.float16), TEXT, 100)
    assert result.noise_score[0] == 0.5


def test_zero_shot_by_hand():
    result = zero_shot(np.array([[1.0, 0.0], [0.0, 5.0]], np.float32), TEXT, 2)
    assert result.class_index.tolist() == [0, 1]
    np.testing.assert_allclose(result.noise_score, 1 / (1 + np.exp(2)), rtol=1e-5)


def scores(method, words=None, **values):
    """Of images at class 0, at class 1, nearer class 0, and at neither, at a scale of 2."""
    images = [[1, 0, 0], [0, 2, 0], [0.6, 0, 0.8], [0, 0, 5]]
    data = of_features(images, np.eye(2, 3), 2.0, words=words)
    found, _ = decide(method, data, ThresholdSettings(), **values)
    assert (found.is_noise is None) == (method != "neglabel")
    return found.id_score


E, NO = np.e, [[0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize(
    ("method", "values", "expected"),
    [
        ("max-logit", {}, [2, 2, 1.2, 0]),
        ("energy", {}, np.log([E**2 + 1, E**2 + 1, E**1.2 + 1, 2])),
        ("logitgap", {}, [2, 2, 1.2, 0]),  # of two classes
        ("mcm", {}, [E**2 / (E**2 + 1)] * 2 + [E**1.2 / (E**1.2 + 1), 0.5]),
        ("mcm", {"temperature": 1.0}, [E / (E + 1)] * 2 + [E**0.6 / (E**0.6 + 1), 0.5]),
        # Image 3 is the negative word: e^0 + e^0 against e^2.
        ("neglabel", {"words": NO[:1]}, [*[(E**2 + 1) / (E**2 + 2)] * 2,
                                         (E**1.2 + 1) / (E**1.2 + 1 + E**1.6), 2 / (2 + E**2)]),
        # It is as near to both classes (0), and says no (2) to both.
        ("clipn", {"words": NO}, [*[(E**4 + (E**2 + 1) / 2) / (E**2 + 1) ** 2] * 2,
                                  (E**1.2 / (1 + E**0.4) + 1 / (1 + E**1.6)) / (E**1.2 + 1),
                                  1 / (1 + E**2)]),
    ],
)  # fmt: skip
def test_scores_by_hand(method, values, expected):
    np.testing.assert_allclose(scores(method, **values), expected, rtol=1e-5, atol=1e-6)


def test_logit_gap_by_hand():
    logits = np.array([[5, 1, 4, 3, -9], [2, 2, 2, 2, 2]], np.float32)
    for others, expected in ((1, [1, 0]), (2, [1.5, 0]), (4, [5.25, 0]), (9, [5.25, 0])):
        np.testing.assert_allclose(logit_gap(logits, others), expected, atol=1e-6)
    np.testing.assert_allclose(logit_gap(logits[:, :1], 3), [5, 2])
