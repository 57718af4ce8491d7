"""A stream made up, and detectors that are small enough to be ready soon."""

import numpy as np
from learned import state_of

from zsntta_cli import Detector

COUNT, DIM, NAMES = 300, 16, ("cat", "dog", "a horse")
SMALL = {
    "zs-clip": {"queue": 64},
    "adand": {"queue": 64, "update_every": 16, "warmup": 4},
    "cull": {"queue": 64, "cull_first": 16, "cull_ring": 64},
}


def world(seed=0, classes=3, count=COUNT, spread=1.5, share=0.25):
    """Text features, features, and their classes: -1 is noise, a cluster of its own."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes + 1, DIM))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    labels = np.where(rng.random(count) < share, -1, rng.integers(classes, size=count))
    features = 10 * centres[labels] + spread * rng.normal(size=(count, DIM))
    return centres[:classes].astype(np.float32), features.astype(np.float32), labels


def detector(method="cull", world_seed=0, classes=3, **more):
    """A small detector of the classes of a world; `more` are settings and other parts of it."""
    given = {"names": NAMES[:classes], **SMALL[method], **more}
    text, scale = given.pop("text", None), given.pop("scale", 20.0)
    text = world(world_seed, classes)[0] if text is None else text
    return Detector(text, scale, method=method, **given)


def assert_same(one, other):
    """That two verdicts say the same of every image, to the bit."""
    names = ("class_index", "answer", "score", "threshold", "stage", "top_index", "top_score")
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def assert_same_state(one, other):
    """That two detectors have learned the same, to the bit."""
    one, other = state_of(one), state_of(other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)
