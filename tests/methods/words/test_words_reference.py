"""NegLabel, CSP, AdaNeg and TANL against references that go item by item."""

from unittest import mock

import numpy as np
import pytest
from reference import words as reference
from streams import decide, near_words

from zsntta_cli.methods.words import vocabulary
from zsntta_cli.settings import ThresholdSettings

QUEUE = ThresholdSettings(queue=64)
STREAMS = {
    "injected": {},
    "no noise images": {"injected": False},
    "two classes": {"classes": 2, "sizes": (30,)},
    "one class": {"classes": 1},
    "many classes": {"classes": 60, "sizes": (20, 10), "items": 150},
    "few images": {"distinct": 25, "injected": False},
}
SETTINGS = {
    "neglabel": [{}, {"groups": 4, "group_mass": "mean"}, {"negatives": 23, "groups": 5}],
    "csp": [{"mined_share": 0.5, "groups": 6}, {"mined_share": 0.4, "too_near": 0.3, "groups": 2}],
    "adaneg": [
        {},
        {"adaneg_shots": 2, "gap": 0.2, "adaneg_text": 0.7},
        {"adaneg_shots": 9, "adaneg_sure": 0.5},
        {"group_mass": "mean", "grouping": "ranked", "groups": 3, "negatives": 20},
    ],
    "tanl": [
        {"tanl_words": 20},
        {"tanl_words": 15, "tanl_step": 4, "tanl_ring": 10, "gap": 0.2},
        {"tanl_candidates": "mined", "negatives": 25, "tanl_step": 0, "tanl_words": 8},
    ],
}
CASES = [(m, values, kind) for m, some in SETTINGS.items() for values in some for kind in STREAMS]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("method", "values", "kind"), CASES)
def test_every_method_is_its_equations(method, values, kind, seed):
    data = near_words(seed, **STREAMS[kind])
    found, options = decide(method, data, QUEUE, **values)
    rule = reference.neglabel if method == "csp" else getattr(reference, method)
    is_noise, id_score, *class_index = rule(data, options, QUEUE)
    np.testing.assert_allclose(found.id_score, id_score, atol=2e-5)
    np.testing.assert_array_equal(found.is_noise, is_noise)
    expected = class_index[0] if class_index else data.class_index
    np.testing.assert_array_equal(found.class_index, expected)


@pytest.mark.parametrize("method", ["adaneg", "tanl"])
def test_small_blocks_and_large_ones_decide_alike(method):
    data = near_words(3)
    whole = decide(method, data, QUEUE)[0]
    with mock.patch.object(vocabulary, "_LARGEST_ITEMS", 7):
        parts = decide(method, data, QUEUE)[0]
    np.testing.assert_array_equal(parts.is_noise, whole.is_noise)
    np.testing.assert_array_equal(parts.class_index, whole.class_index)
    np.testing.assert_allclose(parts.id_score, whole.id_score, atol=1e-6)


@pytest.mark.parametrize("method", ["adaneg", "tanl"])
def test_what_came_before_counts(method):
    """That the references' streams are no idle ones: without memory the scores are others."""
    data = near_words(4, items=60)
    alone = np.concatenate(
        [decide(method, data.part(slice(t, t + 1)), QUEUE)[0].id_score for t in range(len(data))]
    )
    found = decide(method, data, QUEUE)[0].id_score
    assert (np.abs(found - alone) > 0.01).mean() > 0.2


@pytest.mark.parametrize("method", ["neglabel", "csp", "adaneg", "tanl"])
def test_a_fixed_threshold_is_a_cut_of_the_score(method):
    few = {"groups": 1, "mined_share": 0.9} if method in ("neglabel", "csp") else {}
    found = decide(method, near_words(5), ThresholdSettings(fixed=0.5), **few)[0]
    np.testing.assert_array_equal(found.is_noise, found.id_score < 0.5)
    assert 0.2 < found.is_noise.mean() < 0.8
