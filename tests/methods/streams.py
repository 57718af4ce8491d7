"""Streams that methods are tried on."""

import numpy as np

from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.scores import zero_shot

COUNT, DIM, CLASSES = 400, 16, 4


def stream(seed=0, count=COUNT):
    """Three clusters of ID, others of noise, an item known to be noise now and then."""
    rng = np.random.default_rng(seed)
    text = rng.normal(size=(CLASSES, DIM))
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    centres = np.concatenate([text, rng.normal(size=(2, DIM)) / 4])
    features = 10 * centres[rng.integers(len(centres), size=count)]
    features = (features + 1.5 * rng.normal(size=(count, DIM))).astype(np.float32)
    text = text.astype(np.float32)
    pool = Pool(features, text, 20.0, zero_shot(features, text, 20.0))
    return StreamData(pool, rng.permutation(count), rng.random(count) < 0.1, seed)
