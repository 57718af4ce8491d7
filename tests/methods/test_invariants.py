"""What holds of every method that replays from the cache: honest, in pieces of any size."""

import copy
import dataclasses
import itertools
import pickle
import random

import numpy as np
import pytest
from learned import equal
from made import with_some_pairs
from streams import assert_same, near_words

from zsntta_cli.methods import FROZEN, METHODS, NO_TEXT
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.match import Match
from zsntta_cli.settings import MATCH, ThresholdSettings
from zsntta_cli.simulation.checks import FAILED, check_method

CACHED = with_some_pairs(name for name, method in METHODS.items() if not method.live)
ONLINE = [name for name, method in METHODS.items() if method.online]
SMALL = {  # so that a short stream is enough for every stage of every method
    "warmup": 2, "update_every": 32, "learning_rate": 0.01, "cull_first": 16, "batch_size": 1,
    "cull_ring": 128, "groups": 3, "oodd_items": 40, "adaneg_shots": 3, "tanl_words": 12,
    "tanl_ring": 16, "dde_words": 12, "dde_cache": 64, "block": 16, "mined_share": 0.6,
}  # fmt: skip
QUEUE = ThresholdSettings(queue=64)


def options_of(method):
    fields = METHODS[method].fields()
    return METHODS[method].settings(**{name: SMALL[name] for name in SMALL if name in fields})


def started(method, data, threshold=QUEUE):
    return METHODS[method](data, options_of(method), threshold)


def stream(method, seed=0, classes=5, items=400, injected=True):
    """Images near names and words, with what a method needs."""
    data = near_words(seed, items, classes, injected=injected)
    if METHODS[method].needs == NO_TEXT:
        no = np.resize(data.more_text, data.text_features.shape)
        data = dataclasses.replace(data, more_text=no)
    return data


@pytest.mark.parametrize("method", CACHED)
def test_every_method_is_honest(method):
    assert [result for result in check_method(method) if result.outcome == FAILED] == []


@pytest.mark.parametrize("method", CACHED)
def test_what_a_method_gets_stays_as_it_was_and_the_processes_random_states_too(method):
    data = stream(method)
    before = pickle.dumps((data, random.getstate(), np.random.get_state()))  # noqa: NPY002
    started(method, data).push(data)
    assert before == pickle.dumps((data, random.getstate(), np.random.get_state()))  # noqa: NPY002


@pytest.mark.parametrize("method", CACHED)
@pytest.mark.parametrize(("classes", "items"), [(1, 200), (60, 40), (4, 400), (4, 1), (4, 0)])
def test_any_number_of_classes_and_of_items_will_do(method, classes, items):
    """One class, more classes than items, no noise images, one item, and none."""
    data, score = stream(method, 6, classes, items, injected=classes != 4), QUEUE.score
    if classes == 1 and METHODS[method].decides:  # MCM is 1 for every image: runs take this score
        data, score = Match(None)(data), MATCH
    decisions = started(method, data, dataclasses.replace(QUEUE, score=score)).push(data)
    assert len(decisions.class_index) == len(decisions.id_score) == items
    assert np.isfinite(decisions.id_score).all()
    assert ((decisions.class_index >= 0) & (decisions.class_index < classes)).all()
    assert (decisions.is_noise is None) == (not METHODS[method].decides)


@pytest.mark.parametrize("method", CACHED)
def test_the_facts_of_a_method_are_true_of_its_decisions(method):
    """Its scores are shares, its classes the frozen model's, and how long ZS-CLIP decides."""
    data, facts = stream(method, 4, injected=False), METHODS[method]
    online = started(method, data)
    decisions = online.push(data)
    if facts.is_probability:
        assert decisions.id_score.min() >= 0
        assert decisions.id_score.max() <= 1 + 1e-6
    assert facts.class_probability in (FROZEN, "")
    if facts.class_probability == FROZEN:
        assert np.array_equal(decisions.class_index, data.class_index)
    thresholds = decisions.detector_threshold
    first = 0 if thresholds is None else int(np.isnan(thresholds).sum())
    assert first == options_of(method).warm_up
    if first:
        assert np.isnan(thresholds[:first]).all()
        by_zs_clip = started("zs-clip", data).push(data).is_noise
        assert np.array_equal(decisions.is_noise[:first], by_zs_clip[:first])
        assert not np.array_equal(decisions.is_noise, by_zs_clip)


@pytest.mark.parametrize("method", [*ONLINE, "adand+tda", "oodd+bca", "neglabel+oga"])
def test_every_online_method_decides_in_pieces_as_in_one_from_pickles_and_frozen(method):
    data = near_words(7)
    whole = started(method, data).push(data)
    for cuts in ((1, 2, 3, 64, 65, 200), (128,), ()):
        online, parts = started(method, data), []
        for start, end in itertools.pairwise((0, *cuts, len(data))):
            parts.append(online.push(data.part(slice(start, end))))
            before = pickle.dumps(online)
            frozen = copy.deepcopy(online)
            alone = frozen.push(data.part(slice(5, 9)), learn=False)
            one = frozen.push(data.part(slice(6, 7)), learn=False)
            assert (alone.class_index[1], alone.is_noise[1]) == (one.class_index, one.is_noise)
            np.testing.assert_allclose(alone.id_score[1], one.id_score[0], atol=1e-6)
            assert equal(frozen, online)
            online = pickle.loads(before)
        joined = Decisions.joined(parts)
        np.testing.assert_array_equal(joined.class_index, whole.class_index)
        np.testing.assert_array_equal(joined.is_noise, whole.is_noise)
        np.testing.assert_allclose(joined.id_score, whole.id_score, atol=1e-6)


@pytest.mark.parametrize("method", ["zs-clip", "adand", "oodd", "dde"])
def test_pieces_of_whole_batches_are_decided_as_in_one(method):
    data, pieces = near_words(2, 230), (slice(0, 96), slice(96, 112), slice(112, None))
    options = dataclasses.replace(options_of(method), batch_size=16)
    whole, online = (METHODS[method](data, options, QUEUE) for _ in range(2))
    joined = Decisions.joined([online.push(data.part(piece)) for piece in pieces])
    assert_same(joined, whole.push(data))
