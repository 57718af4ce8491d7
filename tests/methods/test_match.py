"""The noise score "match": by hand, of one class too, and told by nothing that comes later."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made import fails

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.match import Match

HALF_PRIOR = math.log(32_768) / 2


def data(count=200, classes=3, seed=0, injected=0.2):
    rng = np.random.default_rng(seed)
    text = np.linalg.qr(rng.normal(size=(8, classes)))[0].T.astype(np.float32)
    features = rng.normal(size=(count, 8)).astype(np.float32)
    return StreamData.scored(features, text, 20.0, rng.random(count) < injected)


def test_by_hand():
    even = -HALF_PRIOR + 13  # half way between the prior and even odds
    logits = np.array([even, even + 2 * math.log(3), even - 2 * math.log(3), 9e9, -9e9])
    frozen = replace(data(5).zero_shot, top_logits=logits[:, None])
    found = Match(-13.0)(replace(data(5), zero_shot=frozen)).noise_score
    np.testing.assert_allclose(found, [0.5, 0.25, 0.75, 0, 1], atol=1e-12)


@pytest.mark.parametrize("bias", [None, -12.0])
def test_a_stream_is_scored_by_its_past_alone(bias):
    whole = data()
    found = Match(bias)(whole)
    now = 120
    part = Match(bias)(whole.part(slice(0, now)))
    assert np.array_equal(found.noise_score[:now], part.noise_score)
    assert np.array_equal(found.part(slice(50, now)).noise_score, part.noise_score[50:])
    assert np.array_equal(found.class_index, whole.class_index)
    cosines = whole.image_features @ whole.text_features.T
    cosines /= np.linalg.norm(whole.image_features, axis=1, keepdims=True)
    best = 20 * cosines.max(axis=1).astype(np.float64)
    if bias is not None:
        expected = 1 / (1 + np.exp((best + bias + HALF_PRIOR) / 2))
    else:
        clean = ~whole.injected
        seen = [best[: t + 1][clean[: t + 1]] for t in range(len(best))]
        z = [
            (b - s.mean()) / s.std() if len(s) and s.std() else 0.0
            for b, s in zip(best, seen, strict=True)
        ]
        expected = 1 / (1 + np.exp(1.5 * np.array(z)))
    np.testing.assert_allclose(found.noise_score, expected, atol=1e-5)


def import_cats(zsntta, tmp_path, *more):
    """Forty images of one class, imported."""
    generator = np.random.default_rng(0)
    one = generator.standard_normal((1, 8))
    np.savez(tmp_path / "f.npz", features=generator.standard_normal((40, 8)) + 2 * one,
             labels=np.zeros(40, int))  # fmt: skip
    np.savez(tmp_path / "t.npz", text_features=one / np.linalg.norm(one), class_names=["cat"])
    return zsntta("cache", "import", "cats", "--features", "f.npz", "--text", "t.npz", *more)


RUN = ("simulate", "--encoder", "imported", "--id", "cats", "--ratio", 0)


def test_one_class_asks_for_match(zsntta, tmp_path):
    assert import_cats(zsntta, tmp_path).exit_code == 0
    fails(zsntta(*RUN, "--method", "zs-clip"), "has only one class", "--set score=match", code=2)
    for method in ("zs-clip", "cull"):
        assert zsntta(*RUN, "--method", method, "--set", "score=match").exit_code == 0
    assert zsntta(*RUN, "--method", "max-logit").exit_code == 0  # it decides nothing
