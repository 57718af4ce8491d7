"""`--precision amp` as it is typed: extracted, replayed, detected, listed."""

import json
from pathlib import Path

import numpy as np
from made import TINY

from zsntta_cli.cache.hdf5 import read_features, read_sample_ids

AMP = (*TINY, "--precision", "amp")


def test_features_of_autocast_are_made_replayed_adapted_and_listed(cached):
    made = cached("extract", "--dataset", "shapes", "--limit", "60", "--no-partners", *AMP)
    assert made.exit_code == 0, made.output
    assert "slow in float16" in made.stderr
    assert "--model tiny --precision amp" in " ".join(made.stderr.split())
    ours = read_features(Path("features/tiny-amp/shapes.h5"))
    plain = read_features(Path("features/tiny/shapes.h5"))
    assert ours.identity == {**plain.identity, "precision": "amp"}
    rows = [read_sample_ids(plain.path).index(name) for name in read_sample_ids(ours.path)]
    assert not np.array_equal(ours.image_features, plain.image_features[rows])
    np.testing.assert_allclose(ours.image_features, plain.image_features[rows], atol=0.1)
    ran = cached("simulate", "--method", "zs-clip", "--ratio", "0", *AMP)
    assert ran.exit_code == 0, ran.output
    assert "shapes" in ran.stdout
    shown = cached("cache", "show", "shapes", *AMP)
    assert "amp" in shown.stdout
    listed = cached("encoders")
    assert "--model tiny --precision amp" in " ".join(listed.stdout.split())
    live = ("--method", "tent", "--ratio", "0", "--batch-size", "16", "--noise", "none")
    adapted = cached("simulate", *live, *AMP)
    assert adapted.exit_code == 0, adapted.output
    assert "slow in float16" in adapted.stderr


def test_detect_takes_it_and_keeps_its_features(pictures):
    detect = ("detect", "pictures", "--classes", "star,circle,square")
    first, again = (pictures(*detect, *AMP) for _ in range(2))
    assert first.exit_code == again.exit_code == 0, first.output + again.output
    assert first.stdout == again.stdout
    assert "slow in float16" in first.stderr
    assert "slow in float16" not in again.stderr, "nothing is new to be encoded"
    results = first, pictures(*detect, *TINY)
    scores = [[json.loads(line)["score"] for line in r.stdout.splitlines()] for r in results]
    assert len(scores[0]) == 60
    assert scores[0] != scores[1]
    np.testing.assert_allclose(*scores, atol=0.1)
