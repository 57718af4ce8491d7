"""The gap rule: by hand, and what it is at either end."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.methods.threshold import is_surely_id, is_surely_noise

U = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.69, 0.71, 1.0])


def test_by_hand():
    # θ = 0.4, g = 0.5: ID below 0.2, noise above 0.7.
    threshold = np.full(len(U), 0.4)
    assert is_surely_id(U, threshold, 0.5).tolist() == [True, True, *[False] * 6]
    assert is_surely_noise(U, threshold, 0.5).tolist() == [*[False] * 6, True, True]


@given(u=st.floats(0, 1), threshold=st.floats(0, 0.99), gap=st.floats(0, 1))
def test_no_item_is_both_and_a_wider_gap_has_fewer(u, threshold, gap):
    u, threshold = np.array([u]), np.array([threshold])
    assert not (is_surely_id(u, threshold, gap) & is_surely_noise(u, threshold, gap)).any()
    for rule in (is_surely_id, is_surely_noise):
        assert rule(u, threshold, 0)[0] or not rule(u, threshold, gap)[0]
