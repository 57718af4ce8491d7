"""Streams for methods with negative words: images near names, or near some of the words."""

import dataclasses

import numpy as np

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.scores import unit, zero_shot

DIM, SCALE = 24, 12.0


def stream(seed, items=220, classes=5, sizes=(40, 15), injected=True, distinct=None):
    """Items drawn of as many images, or of fewer; every ninth is known noise where any is."""
    rng = np.random.default_rng(seed)
    names = unit(rng.normal(size=(classes, DIM))).astype(np.float32)
    words = unit(rng.normal(size=(sum(sizes), DIM))).astype(np.float32)
    count = distinct or items
    centres = np.concatenate([names[rng.integers(classes, size=count)],
                              words[rng.integers(min(4, len(words)), size=count)]])  # fmt: skip
    centres = centres[np.arange(count) + count * (rng.random(count) < 0.4)]
    images = (8 * centres + 1.2 * rng.normal(size=(count, DIM))).astype(np.float32)
    known = (np.arange(items) % 9 == 8) & injected
    index = np.arange(items) if distinct is None else rng.integers(count, size=items)
    if distinct is None:
        images[known] = rng.normal(size=(known.sum(), DIM)) + 2
    pool = Pool(images, names, SCALE, zero_shot(images, names, SCALE), words, sizes)
    return StreamData(pool, index, known, seed)


def decide(method, data, threshold, **values):
    """The decisions of a method with these settings, and the settings."""
    options = METHODS[method].settings_class(**values)
    return METHODS[method].load()(data, options, threshold), options


def with_words(data, *lists):
    """The same stream beside other word lists."""
    words = np.array([word for words in lists for word in words], np.float32)
    pool = dataclasses.replace(data.pool, more_text=words, more_sizes=tuple(map(len, lists)))
    return dataclasses.replace(data, pool=pool)
