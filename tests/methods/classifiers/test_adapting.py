"""What holds of every classifier: what it learns from, and when."""

from dataclasses import replace

import numpy as np
import pytest
from streams import near_words, of_features

from zsntta_cli.methods import CLASSIFIERS, METHODS
from zsntta_cli.methods.classifiers.adapting import Adapting

NAMES = [name for name, kind in CLASSIFIERS.items() if issubclass(kind, Adapting)]


def classes(name, data, offered, **values):
    """The classes (T,) by a classifier."""
    kind = CLASSIFIERS[name]
    return kind(data, kind.Settings(**values)).classify(data, offered)


def with_others_at(data, items):
    """The same stream with other images in the place of some (T,)."""
    features = np.random.default_rng(8).normal(size=data.image_features.shape)
    features = np.where(items[:, None], features, data.image_features)
    return of_features(features, data.text_features, data.logit_scale)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_offered_is_the_frozen_model_and_what_is_not_offered_changes_nothing(name):
    data, offered = near_words(), np.random.default_rng(5).random(220) < 0.7
    assert np.array_equal(classes(name, data, np.zeros(220, bool)), data.class_index)
    other = with_others_at(data, ~offered)
    first, second = (classes(name, d, offered)[offered] for d in (data, other))
    assert np.array_equal(first, second)


BLOCKS = ("stata", "transclip", "lame")  # an item is classified together with its block


@pytest.mark.parametrize("name", BLOCKS)
def test_injected_noise_is_in_no_block(name):
    data, injected = near_words(), np.arange(220) % 9 == 8
    pair = [replace(d, injected=injected) for d in (data, with_others_at(data, injected))]
    first, second = (classes(name, d, ~injected, block=20)[~injected] for d in pair)
    assert np.array_equal(first, second)


def test_a_block_of_two_methods_is_whole_in_both():
    method = METHODS["adand+stata"]
    assert method.settings().at_once == 64
    assert method.settings(block=6, batch_size=4).at_once == 12
