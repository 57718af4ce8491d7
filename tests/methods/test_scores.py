import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.methods.scores import cosine_logits, zero_shot

TEXT = np.eye(2, dtype=np.float32)


def test_cosines_by_hand_whatever_the_norm():
    logits = cosine_logits(np.array([[3.0, 4.0], [0.3, 0.4]]), TEXT, 10)
    np.testing.assert_allclose(logits, [[6, 8], [6, 8]], rtol=1e-6)


def test_a_zero_feature_has_no_opinion():
    result = zero_shot(np.zeros((1, 2), np.float16), TEXT, 100)
    assert result.noise_score[0] == 0.5


def test_zero_shot_by_hand():
    result = zero_shot(np.array([[1.0, 0.0], [0.0, 5.0]], np.float32), TEXT, 2)
    assert result.class_index.tolist() == [0, 1]
    np.testing.assert_allclose(result.noise_score, 1 / (1 + np.exp(2)), rtol=1e-5)


@given(st.integers(1, 9000))
def test_chunks_change_nothing(count):
    features = np.random.default_rng(1).standard_normal((count, 2)).astype(np.float16)
    whole = zero_shot(features, TEXT, 7)
    last = zero_shot(features[-1:], TEXT, 7)
    assert whole.class_index[-1] == last.class_index[0]
    np.testing.assert_allclose(whole.noise_score[-1], last.noise_score[0], atol=1e-6)
