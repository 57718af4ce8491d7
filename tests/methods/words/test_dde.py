"""DDE against its equations with everything recomputed, and what holds of its parts."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import dde as reference
from streams import decide, near_words

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.words.dde import best_split
from zsntta_cli.settings import ThresholdSettings

QUEUE = ThresholdSettings(queue=64)
STREAMS = {
    "injected": {"items": 140},
    "no noise images": {"injected": False, "items": 100},
    "two classes": {"classes": 2, "sizes": (30,), "items": 100},
    "one class": {"classes": 1, "items": 100},
    "many classes": {"classes": 60, "sizes": (20, 10), "items": 100},
    "few images": {"distinct": 25, "injected": False, "items": 100},
}
SETTINGS = [
    {"batch_size": 32, "dde_words": 10},
    {"batch_size": 1, "dde_words": 7, "dde_exclusion": 0.0, "dde_gate": 0.1},
    {"batch_size": 20, "dde_words": 9, "dde_doubled": True, "dde_cells": "grid"},
    {"batch_size": 64, "dde_words": 500, "dde_exclusion": 3.0, "dde_cache": 12, "negatives": 23},
    {"batch_size": 15, "dde_words": 1, "dde_cache": 3, "dde_doubled": True},
]


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("values", SETTINGS, ids=range(len(SETTINGS)))
def test_it_is_its_equations(values, kind):
    few = {"items": 50} if values["batch_size"] == 1 else {}  # it takes longest
    data = near_words(1, **STREAMS[kind] | few)
    decisions, options = decide("dde", data, QUEUE, **values)
    is_noise, id_score, scores = reference.dde(data, options, QUEUE)
    np.testing.assert_allclose(decisions.id_score, id_score, atol=2e-5)
    named = np.take_along_axis(scores, decisions.class_index[:, None].astype(int), axis=1)[:, 0]
    np.testing.assert_allclose(named, scores.max(axis=1), atol=2e-3)
    np.testing.assert_array_equal(decisions.is_noise, is_noise)


def test_the_gaussians_change_classes_and_second_choices_change_them_again():
    data = near_words(3, items=600, injected=False)
    named = [
        decide("dde", data, QUEUE, batch_size=50, dde_exclusion=beta)[0].class_index
        for beta in (0.0, 2.0)
    ]
    assert (named[0] != data.class_index).any()
    assert (named[0] != named[1]).any()


def test_a_batch_waits_for_its_last_item_and_no_longer():
    data, method = near_words(5), METHODS["dde"]
    kept = {"batch_size": 40, "dde_words": 5}
    options = method.settings(**kept)
    assert options.at_once - 1 == 39
    whole = decide("dde", data, QUEUE, **kept)[0]
    before = decide("dde", data.part(slice(120)), QUEUE, **kept)[0]
    np.testing.assert_array_equal(whole.is_noise[:120], before.is_noise)
    np.testing.assert_array_equal(whole.id_score[:120], before.id_score)
    differ = []
    for end in range(81, 120, 6):  # within a batch
        cut = decide("dde", data.part(slice(end)), QUEUE, **kept)[0]
        columns = ("id_score", "class_index", "detector_threshold")
        differ += [(getattr(whole, name)[80:end] != getattr(cut, name)[80:]).any()
                   for name in columns]  # fmt: skip
    assert any(differ)


def test_known_noise_is_learned_as_no_class():
    data = near_words(7, items=300)
    features = np.array(data.pool.image_features)
    features[data.index[data.injected]] *= -1  # other noise: scores change by it, classes may not
    kept = {"batch_size": 30, "dde_words": 5}
    pool = dataclasses.replace(data.pool, image_features=features)
    first, second = (decide("dde", d, QUEUE, **kept)[0]
                     for d in (data, dataclasses.replace(data, pool=pool)))  # fmt: skip
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


def test_tiny_scores_are_told_apart():
    """What the released grid of steps of 0.01 cannot: it leaves it to the rounding of scores."""
    values = np.array([1e-6, 2e-6, 1.5e-6, 4e-4, 5e-4])
    assert best_split(values, 0.5) == 4e-4
