"""Streams that methods are tried on, and what they decide; none of it is a test."""

from dataclasses import replace

import numpy as np

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.scores import unit


def of_features(features, text, scale, injected=None, words=None, sizes=(), **more):
    """Each of the images once, in order; none of them known noise unless it is said."""
    features, text = np.asarray(features, np.float32), np.asarray(text, np.float32)
    words = None if words is None else np.asarray(words, np.float32)
    injected = None if injected is None else np.asarray(injected, bool)
    more = {"more_text": words, "more_sizes": sizes, **more}
    return StreamData.scored(features, text, scale, injected, **more)


def of_scores(features, u, injected=None):
    """The same of images with given noise scores, of one class."""
    data = of_features(features, np.eye(1, np.shape(features)[1]), 1.0, injected)
    return replace(data, own_score=np.asarray(u, float))


def near_words(seed=0, items=220, classes=5, sizes=(40, 15), injected=True):
    """Images near names, or near some of the words that methods with negative words have.

    Every ninth is known noise where any is.
    """
    rng, dim = np.random.default_rng(seed), 24
    names = unit(rng.normal(size=(classes, dim))).astype(np.float32)
    words = unit(rng.normal(size=(sum(sizes), dim))).astype(np.float32)
    centres = np.concatenate([names[rng.integers(classes, size=items)],
                              words[rng.integers(min(4, len(words)), size=items)]])  # fmt: skip
    centres = centres[np.arange(items) + items * (rng.random(items) < 0.4)]
    images = (8 * centres + 1.2 * rng.normal(size=(items, dim))).astype(np.float32)
    known = (np.arange(items) % 9 == 8) & injected
    images[known] = rng.normal(size=(known.sum(), dim)) + 2
    return of_features(images, names, 12.0, known, words, sizes, seed=seed)


def decide(method, data, threshold, **values):
    """The decisions of a method with these settings, and the settings."""
    options = METHODS[method].settings(**values)
    return METHODS[method](data, options, threshold).push(data), options


def assert_same(found, expected):
    """All columns of decisions are equal, to the bit."""
    for name, column in vars(found).items():
        np.testing.assert_array_equal(column, vars(expected)[name], err_msg=name)
