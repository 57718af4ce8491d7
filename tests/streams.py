"""Streams that methods are tried on, and what they decide; none of it is a test."""

import numpy as np

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.scores import ZeroShot, unit, zero_shot

COUNT, DIM, CLASSES = 400, 16, 4


def of_features(features, text, scale, injected=None, words=None, sizes=(), seed=0):
    """Each of the images once, in order; none of them known noise unless it is said."""
    features, text = np.asarray(features, np.float32), np.asarray(text, np.float32)
    more = None if words is None else np.asarray(words, np.float32)
    scores = zero_shot(features, text, scale)
    pool = Pool(features, text, scale, scores, more_text=more, more_sizes=sizes)
    return _once(pool, injected, seed)


def of_scores(features, u, injected=None):
    """The same of images with given noise scores, of one class."""
    features, u = np.asarray(features, np.float32), np.asarray(u, float)
    text = np.eye(1, features.shape[1], dtype=np.float32)
    return _once(Pool(features, text, 1.0, ZeroShot(np.zeros(len(u), np.int32), u)), injected)


def _once(pool, injected, seed=0):
    count = len(pool.image_features)
    known = np.zeros(count, bool) if injected is None else np.asarray(injected, bool)
    return StreamData(pool, np.arange(count), known, seed)


def stream(seed=0, count=COUNT):
    """Three clusters of ID, others of noise, an item known to be noise now and then."""
    rng = np.random.default_rng(seed)
    text = unit(rng.normal(size=(CLASSES, DIM)))
    centres = np.concatenate([text, rng.normal(size=(2, DIM)) / 4])
    features = 10 * centres[rng.integers(len(centres), size=count)]
    features = (features + 1.5 * rng.normal(size=(count, DIM))).astype(np.float32)
    text = text.astype(np.float32)
    pool = Pool(features, text, 20.0, zero_shot(features, text, 20.0))
    return StreamData(pool, rng.permutation(count), rng.random(count) < 0.1, seed)


def near_words(seed, items=220, classes=5, sizes=(40, 15), injected=True, distinct=None):
    """Images near names, or near some of the words that methods with negative words have.

    Items are drawn of as many images, or of fewer; every ninth is known noise where any is.
    """
    rng, dim = np.random.default_rng(seed), 24
    names = unit(rng.normal(size=(classes, dim))).astype(np.float32)
    words = unit(rng.normal(size=(sum(sizes), dim))).astype(np.float32)
    count = distinct or items
    centres = np.concatenate([names[rng.integers(classes, size=count)],
                              words[rng.integers(min(4, len(words)), size=count)]])  # fmt: skip
    centres = centres[np.arange(count) + count * (rng.random(count) < 0.4)]
    images = (8 * centres + 1.2 * rng.normal(size=(count, dim))).astype(np.float32)
    known = (np.arange(items) % 9 == 8) & injected
    index = np.arange(items) if distinct is None else rng.integers(count, size=items)
    if distinct is None:
        images[known] = rng.normal(size=(known.sum(), dim)) + 2
    scores = zero_shot(images, names, 12.0)
    pool = Pool(images, names, 12.0, scores, more_text=words, more_sizes=sizes)
    return StreamData(pool, index, known, seed)


def decide(method, data, threshold, **values):
    """The decisions of a method with these settings, and the settings."""
    options = METHODS[method].settings(**values)
    return METHODS[method](data, options, threshold).push(data), options


def assert_same(found, expected):
    """All columns of decisions are equal, to the bit."""
    for name, column in vars(found).items():
        np.testing.assert_array_equal(column, vars(expected)[name], err_msg=name)
