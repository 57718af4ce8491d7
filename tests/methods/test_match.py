"""The noise score "match": by hand, and of one class."""

import math
from dataclasses import replace

import numpy as np
from made import fails
from streams import near_words

from zsntta_cli.methods.match import Match

HALF_PRIOR = math.log(32_768) / 2


def test_a_sigmoid_models_scores_by_hand():
    even = -HALF_PRIOR + 13  # half way between the prior and even odds
    logits = np.array([even, even + 2 * math.log(3), even - 2 * math.log(3), 9e9, -9e9])
    data = near_words(items=5)
    frozen = replace(data.zero_shot, top_logits=logits[:, None])
    found = Match(-13.0)(replace(data, zero_shot=frozen)).noise_score
    np.testing.assert_allclose(found, [0.5, 0.25, 0.75, 0, 1], atol=1e-12)


def test_without_a_bias_logits_are_standardised_over_the_stream_so_far():
    whole = near_words(1)
    best, z = whole.logits().max(axis=1).astype(np.float64), []
    for t, logit in enumerate(best):
        seen = best[: t + 1][~whole.injected[: t + 1]]
        z.append((logit - seen.mean()) / seen.std() if len(seen) and seen.std() else 0.0)
    match = Match(None)
    found = [match(whole.part(part)).noise_score for part in (slice(50), slice(50, None))]
    expected = 1 / (1 + np.exp(1.5 * np.array(z)))
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-5)


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
