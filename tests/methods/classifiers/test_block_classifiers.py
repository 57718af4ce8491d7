"""StatA, TransCLIP and LAME: which items of a block are classified together."""

from dataclasses import replace

import numpy as np
import pytest
from streams import of_features

from zsntta_cli.methods import CLASSIFIERS, METHODS

NAMES = ("stata", "transclip", "lame")
SCALE = 5.0


def stream(classes, items, dim):
    rng = np.random.default_rng(0)
    text = rng.normal(size=(classes, dim))
    text = (text / np.linalg.norm(text, axis=1, keepdims=True)).astype(np.float32)
    names = np.sort(rng.integers(classes, size=items))  # runs of a class
    features = text[names] + 1.5 * rng.normal(size=(items, dim)) / np.sqrt(dim)
    return of_features(10 * features, text, SCALE)


def classes(name, data, offered, **values):
    """The classes (T,) by a classifier of blocks of 20."""
    kind = CLASSIFIERS[name]
    return kind(data, kind.Settings(**{"block": 20} | values)).classify(data, offered)


def elsewhere(data, chosen):
    """The same stream, but some of its images are others."""
    features = data.features(slice(None)).copy()
    shape = int(chosen.sum()), features.shape[1]
    features[chosen] = np.random.default_rng(5).normal(size=shape)
    return of_features(features, data.text_features, SCALE)


@pytest.mark.parametrize("name", NAMES)
def test_injected_noise_is_never_solved_for(name):
    data, injected = stream(4, 60, 12), np.arange(60) % 9 == 8
    pair = [replace(d, injected=injected) for d in (data, elsewhere(data, injected))]
    first, second = (classes(name, d, ~injected)[~injected] for d in pair)
    assert np.array_equal(first, second)


@pytest.mark.parametrize("name", NAMES)
def test_a_block_of_two_methods_is_whole_in_both(name):
    method = METHODS[f"adand+{name}"]
    assert method.settings().at_once == 64
    assert method.settings(block=6, batch_size=4).at_once == 12
    assert METHODS["adand"].settings().at_once == 1
