"""Streams by their seeds: the bytes of some.

A record is worth what its stream is: whoever names the settings and the seed must get these items.
"""

import hashlib

import numpy as np
import pytest

from zsntta_cli.settings import StreamSettings
from zsntta_cli.simulation.stream import build_stream

SIZES = (300, 170, 40)  # of the ID set, the OOD set and the pool of noise images
LABELS = np.arange(300) ** 2 * 31 % 7
STREAMS = [
    ({}, "9b7a2867b5da79f6"),
    ({"seed": 1}, "0a84f64750fd522d"),
    ({"seed": 17}, "1240baaed79a5af3"),
    ({"order": "class"}, "5efc60e9482dbf05"),
    ({"order": "burst"}, "04297157072a633c"),
    ({"order": "late"}, "63cff41acaeeb67c"),
    ({"order": "first"}, "b2b6187b95c09474"),
    ({"order": "dirichlet:0.1"}, "67919cca062925dd"),
    ({"order": "dirichlet:10"}, "08bcb080c3510457"),
    ({"order": "dirichlet:inf"}, "9b7a2867b5da79f6"),
    ({"order": "class", "ratio": 0.25, "seed": 4}, "20419b8ecbaddc29"),
    ({"order": "burst", "ratio": 0.25, "seed": 4}, "335290c7e74aad24"),
    ({"order": "late", "ratio": 0.25, "seed": 4}, "75b5bc1ac5668953"),
    ({"order": "first", "ratio": 0.25, "seed": 4}, "c9400a946175d0ea"),
    ({"order": "dirichlet:0.001", "ratio": 0.25, "seed": 4}, "cf976c3f69649b74"),
    ({"ratio": 0.0}, "be59283c674ad19a"),
    ({"ratio": 0.75}, "4fd1bd03e944eeec"),
    ({"ratio": "natural"}, "fda160fd7508eee5"),
    ({"ratio": "natural", "order": "class", "seed": 2}, "b4f2fb6a6ad4aa13"),
    ({"ratio": "natural", "order": "burst", "seed": 2}, "2cc92985afe5ef2e"),
    ({"ratio": "natural", "order": "late", "seed": 2}, "11f2a7afb8eca375"),
    ({"ratio": "natural", "order": "first", "seed": 2}, "cab4024435fe4d4c"),
    ({"ratio": "natural", "order": "dirichlet:0.1", "seed": 2}, "cef98de616d68282"),
    ({"noise": "gaussian"}, "0dff0b55fb2f7b1e"),
    ({"noise": "gaussian", "placement": "shuffled", "seed": 3}, "ad2979d42dbf0870"),
    ({"noise": "uniform", "noise_every": 3, "limit": 57}, "12aba45b45af818a"),
    ({"ratio": 0.75, "ood_fill": "cap"}, "fda160fd7508eee5"),
    ({"ratio": 0.25, "rounded_odds": True}, "13d1ba22d934e5aa"),
    (
        {"order": "class", "placement": "shuffled", "noise": "poisson", "ratio": 0.75, "seed": 1},
        "89ddb7b00d638313",
    ),
    ({"order": "dirichlet:0.1", "noise": "gaussian", "ratio": 0.25, "seed": 5}, "df90cdcc01684b1c"),
]


def digest(settings):
    stream = build_stream(settings, *SIZES, LABELS)
    content = stream.kind.astype(np.int8).tobytes() + stream.row.astype(np.int64).tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


@pytest.mark.parametrize(("settings", "expected"), STREAMS)
def test_a_stream_by_its_seed_is_the_same_to_the_bit(settings, expected):
    assert digest(StreamSettings(**settings)) == expected
