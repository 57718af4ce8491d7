"""What holds for every method that replays from the cache: no future, no labels, any chunk."""

import dataclasses
import pickle
import random

import numpy as np
import pytest
from made import with_some_pairs

from zsntta_cli.methods import FROZEN, METHODS, NO_TEXT, WORDS
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.match import Match
from zsntta_cli.methods.scores import cosine_logits, unit
from zsntta_cli.settings import MATCH, ThresholdSettings

COUNT, DIM, CLASSES, NOUNS, ADJECTIVES = 900, 16, 4, 30, 12
CACHED = with_some_pairs(name for name, method in METHODS.items() if not method.live)
ONLINE = [name for name in CACHED if not METHODS[name].offline]
SMALL = {  # so that a short stream is enough for every stage of every method
    "warmup": 2, "update_every": 32, "learning_rate": 0.01, "cull_first": 16,
    "cull_ring": 128, "groups": 3, "oodd_items": 100, "adaneg_shots": 3,
    "tanl_words": 12, "tanl_ring": 16, "dde_words": 12, "block": 16,
    "mined_share": 0.6,  # some of so few words are near the noise
}  # fmt: skip


def options_of(method):
    names = METHODS[method].fields()
    return METHODS[method].settings(**{k: v for k, v in SMALL.items() if k in names})


def stream(method, seed=0, classes=CLASSES):
    """Clusters of ID and of noise, injected noise, and what a method needs."""
    rng = np.random.default_rng(seed)
    text = unit(rng.normal(size=(classes, DIM))).astype(np.float32)
    centres = np.concatenate([text, rng.normal(size=(2, DIM)) / 4])
    features = 10 * centres[rng.integers(len(centres), size=COUNT)]
    features = (features + 1.5 * rng.normal(size=(COUNT, DIM))).astype(np.float32)
    features[-60:] = rng.normal(size=(60, DIM)) + 3
    data = StreamData.scored(features, text, 20.0, np.arange(COUNT) >= COUNT - 60, seed=seed)
    if METHODS[method].needs == WORDS:
        words = unit(rng.normal(size=(NOUNS + ADJECTIVES, DIM))).astype(np.float32)
        words[::7] = unit(centres[classes:].repeat(3, 0) + 0.1 * rng.normal(size=(6, DIM)))
        data = dataclasses.replace(data, more_text=words, more_sizes=(NOUNS, ADJECTIVES))
    elif METHODS[method].needs == NO_TEXT:
        no = unit(text + rng.normal(size=text.shape)).astype(np.float32)
        data = dataclasses.replace(data, more_text=no)
    return data.part(rng.permutation(COUNT))


def decide(method, data):
    return METHODS[method](data, options_of(method), ThresholdSettings(queue=64)).push(data)


def another_future(data, now):
    """The same stream up to an item; then other images, none of them seen before."""
    rng = np.random.default_rng(9)
    features, injected = data.features().copy(), data.injected.copy()
    features[now:] = 10 * rng.normal(size=(COUNT - now, DIM))
    injected[now:] = rng.random(COUNT - now) < 0.3
    other = StreamData.scored(features, data.text_features, data.logit_scale, injected)
    return dataclasses.replace(other.beside(data), seed=data.seed)


def assert_like(one, other):
    """Equal but for the last bits of products."""
    assert (one.class_index != other.class_index).mean() <= 0.002
    if one.is_noise is not None:
        assert (one.is_noise != other.is_noise).mean() <= 0.002
    np.testing.assert_allclose(one.id_score, other.id_score, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ONLINE)
@pytest.mark.parametrize("now", [1, 333, 700])
def test_the_future_changes_no_decision(method, now):
    data = stream(method)
    block = options_of(method).at_once
    now = max(now // block, 1) * block
    seen, other = (decide(method, d).part(slice(now)) for d in (data, another_future(data, now)))
    assert_like(seen, other)


@pytest.mark.parametrize("method", CACHED)
def test_what_a_method_gets_stays_as_it_was_and_the_processes_random_states_too(method):
    data, untouched = stream(method, 2), stream(method, 2)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002  the state that no method may know
    states = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    decide(method, data)
    assert states == (random.getstate(), pickle.dumps(np.random.get_state()))  # noqa: NPY002
    for one, other in ((data, untouched), (data.zero_shot, untouched.zero_shot)):
        for name, values in vars(other).items():
            if isinstance(values, np.ndarray):
                np.testing.assert_array_equal(vars(one)[name], values, err_msg=name)


@pytest.mark.parametrize("method", CACHED)
@pytest.mark.parametrize(
    ("classes", "items"), [(1, 200), (60, 40), (CLASSES, COUNT), (CLASSES, 1), (CLASSES, 0)]
)
def test_any_number_of_classes_and_of_items_will_do(method, classes, items):
    """One class, more classes than items, no noise images, one item, and none."""
    data, score = stream(method, 6, classes).part(slice(items)), ThresholdSettings().score
    if classes == CLASSES:
        data = dataclasses.replace(data, injected=np.zeros(items, bool))
    if classes == 1 and METHODS[method].decides:  # MCM is 1 for every image: runs take this score
        data, score = Match(None)(data), MATCH
    settings = ThresholdSettings(queue=64, score=score)
    decisions = METHODS[method](data, options_of(method), settings).push(data)
    assert len(decisions.class_index) == len(decisions.id_score) == items
    assert np.isfinite(decisions.id_score).all()
    assert ((decisions.class_index >= 0) & (decisions.class_index < classes)).all()
    assert (decisions.is_noise is None) == (not METHODS[method].decides)


@pytest.mark.parametrize("method", CACHED)
def test_probabilities_are_what_the_methods_line_says(method):
    data, line = stream(method, 4), METHODS[method]
    decisions = decide(method, data)
    if line.is_probability:
        assert decisions.id_score.min() >= 0
        assert decisions.id_score.max() <= 1 + 1e-6
    if line.class_probability == FROZEN:
        assert np.array_equal(decisions.class_index, data.class_index)
    else:
        assert not line.class_probability
        assert line.is_probability or not np.array_equal(decisions.class_index, data.class_index)


@pytest.mark.parametrize("method", CACHED)
def test_what_is_near_a_class_scores_higher_than_what_is_near_none(method):
    data = stream(method, 4)
    truth = np.abs(cosine_logits(data.features(slice(None)), data.text_features, 1.0)).max(1)
    sure = ~data.injected & ((truth > 0.9) | (truth < 0.5))
    scores = decide(method, data).id_score
    low, high = (scores[sure & part].mean() for part in (truth < 0.5, truth > 0.9))
    assert high > low


@pytest.mark.parametrize("method", CACHED)
def test_the_line_of_a_method_says_how_long_it_warms_up_and_who_decides(method):
    data = stream(method)
    data = data.part(np.flatnonzero(~data.injected))
    decisions = decide(method, data)
    first, own = options_of(method).warm_up, decisions.detector_threshold
    if own is None:
        assert first == 0
        return
    assert np.array_equal(np.isnan(own), np.arange(len(data)) < first)
    if first:
        by_zs_clip = decide("zs-clip", data).is_noise
        assert np.array_equal(decisions.is_noise[:first], by_zs_clip[:first])
        assert not np.array_equal(decisions.is_noise, by_zs_clip)
