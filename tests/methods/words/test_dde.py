"""DDE: known noise, and the exact threshold by its definition."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from streams import decide, near_words

from zsntta_cli.methods.words.dde import best_split
from zsntta_cli.settings import ThresholdSettings

QUEUE = ThresholdSettings(queue=64)


def test_known_noise_is_learned_as_no_class():
    data = near_words(7, items=300)
    features = data.features().copy()
    features[data.injected] *= -1  # other noise: scores change by it, classes may not
    kept = {"batch_size": 30, "dde_words": 5}
    other = dataclasses.replace(data, image_features=features)
    first, second = (decide("dde", d, QUEUE, **kept)[0] for d in (data, other))
    test = ~data.injected
    np.testing.assert_array_equal(first.class_index[test], second.class_index[test])
    assert (first.id_score[test] != second.id_score[test]).any()


SCORES = st.lists(st.integers(0, 40).map(lambda n: n / 40), min_size=1, max_size=40)


@given(SCORES, st.sampled_from([1.0, 1e-7, 1e-12]), st.sampled_from([0.0, 0.3]))
def test_the_best_split_has_the_least_variance_within_at_any_scale(scores, scale, shift):
    values = np.array(scores) * scale + shift
    at = best_split(values, 0.5)
    if len(set(values)) == 1:
        assert at == 0.5
        return

    def within(edge):
        parts = values[values >= edge], values[values < edge]
        return sum(((part - part.mean()) ** 2).sum() for part in parts)

    least = min(within(edge) for edge in sorted(set(values))[1:])
    assert within(at) <= least * (1 + 1e-6) + 1e-30
