"""What holds of every classifier: what it learns from, and when."""

from dataclasses import replace

import numpy as np
import pytest
from streams import of_features

from zsntta_cli.methods import CLASSIFIERS, METHODS
from zsntta_cli.methods.classifiers.adapting import Adapting

NAMES = [name for name, kind in CLASSIFIERS.items() if issubclass(kind, Adapting)]


def stream(classes, items, dim, seed=0):
    """Images about their text and a shift that all of them share; the last is a zero feature."""
    rng = np.random.default_rng(seed)
    text = rng.normal(size=(classes, dim))
    text = (text / np.linalg.norm(text, axis=1, keepdims=True)).astype(np.float32)
    shift = rng.normal(size=dim) / np.sqrt(dim)
    features = text[rng.integers(classes, size=items)] + shift
    features = 10 * (features + rng.normal(size=(items, dim)) / np.sqrt(dim))
    return of_features(np.append(features[:-1], np.zeros((1, dim)), axis=0), text, 12.0)


def classes(name, data, offered, **values):
    """The classes (T,) by a classifier."""
    kind = CLASSIFIERS[name]
    return kind(data, kind.Settings(**values)).classify(data, offered)


def some(items, seed, share=0.7):
    return np.random.default_rng(seed).random(items) < share


@pytest.mark.parametrize("name", NAMES)
def test_nothing_offered_is_the_frozen_model_and_what_is_not_offered_changes_nothing(name):
    data, offered = stream(6, 200, 12), some(200, 5)
    assert np.array_equal(classes(name, data, np.zeros(200, bool)), data.class_index)
    features = data.features(slice(None)).copy()
    features[~offered] = np.random.default_rng(8).normal(size=(np.sum(~offered), 12))
    other = of_features(features, data.text_features, 12.0)
    first, second = (classes(name, d, offered)[offered] for d in (data, other))
    assert np.array_equal(first, second)


BLOCKS = ("stata", "transclip", "lame")  # an item is classified together with its block


@pytest.mark.parametrize("name", BLOCKS)
def test_injected_noise_is_in_no_block(name):
    data, injected = stream(4, 60, 12), np.arange(60) % 9 == 8
    features = data.features().copy()
    features[injected] = np.random.default_rng(5).normal(size=(injected.sum(), 12))
    other = of_features(features, data.text_features, 12.0)
    pair = [replace(d, injected=injected) for d in (data, other)]
    first, second = (classes(name, d, ~injected, block=20)[~injected] for d in pair)
    assert np.array_equal(first, second)


def test_a_block_of_two_methods_is_whole_in_both():
    method = METHODS["adand+stata"]
    assert method.settings().at_once == 64
    assert method.settings(block=6, batch_size=4).at_once == 12
