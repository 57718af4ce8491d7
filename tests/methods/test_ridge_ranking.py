"""What ridge's images are ranked by where there is no evidence, and what that leaves alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zsntta_cli.detection.flags import Flag, flagged
from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.methods.base import SURE, Decisions, Pool, StreamData
from zsntta_cli.methods.detectors import ridge
from zsntta_cli.methods.detectors.ridge import ranking
from zsntta_cli.methods.detectors.ridge.ranking import Suspicion
from zsntta_cli.methods.settings import RidgeSettings
from zsntta_cli.settings import ThresholdSettings


def test_suspicion_by_hand():
    v = np.array([[0.0, 1.0, 1.0, 1.0], [0.0, -1.0, -1.0, -1.0], [4.0, 0.0, 0.0, 0.0]])
    suspicion = Suspicion.over(v, np.array([1.0, 0.5, 0.5, 0.5]), 0.0, 0.5)
    # z by a half, the largest logit twice: 2, -2 and 2, by their deviation of sqrt(32) / 3
    scores = np.array([2.0, -2.0, 2.0]) * 3 / np.sqrt(32)
    np.testing.assert_allclose(suspicion(v, 0.0), scores - np.median(scores))


@given(st.integers(0, 2**32), st.integers(2, 300), st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_as_many_are_above_its_threshold_as_are_above_the_one_that_decides(seed, count, share):
    v = np.random.default_rng(seed).standard_normal((count, 4))
    words = np.random.default_rng(seed).standard_normal(count)
    suspicion = Suspicion.over(v, np.ones(4), words, round(share * count) / count)
    above = suspicion(v, words) > 0
    assert abs(above.sum() - share * count) <= 1.5


def decide():
    """A stream that is clean for 400 images, then half noise from elsewhere, and its decisions."""
    rng = np.random.default_rng(0)
    text = rng.normal(size=(12, 24))
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    features = text[rng.integers(12, size=1200)] + 0.12 * rng.normal(size=(1200, 24))
    is_far = (np.arange(1200) >= 400) & (rng.random(1200) < 0.5)
    features[is_far] = rng.normal(size=24) / 5 + 0.12 * rng.normal(size=(is_far.sum(), 24))
    text = text.astype(np.float32)
    pool = Pool.scored(features.astype(np.float32), text, 20.0)
    data = StreamData(pool, np.arange(1200), np.zeros(1200, bool))
    return data, text, ridge.run(data, RidgeSettings(), ThresholdSettings())


def test_what_ranks_decides_nothing(monkeypatch):
    """Decisions are the same to the bit whatever images are ranked by."""
    before = decide()[2]
    monkeypatch.setattr(ranking, "_TIMES", np.array([3.0, 0.0, 1.0, 0.0]))
    after = decide()[2]
    for name in ("class_index", "is_noise", "id_score", "detector_threshold", "evidence"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
    assert not np.array_equal(before.suspicion, after.suspicion, equal_nan=True)


def test_margins_rank_where_there_is_evidence_and_the_other_score_where_there_is_none():
    data, text, decisions = decide()
    names = [str(c) for c in range(len(text))]
    verdicts = Verdicts.of(data, decisions, names)
    sure, adapted = decisions.evidence >= SURE, ~np.isnan(decisions.detector_threshold)
    assert (adapted & ~sure).sum() > 50
    assert sure.sum() > 50
    np.testing.assert_array_equal(np.isnan(decisions.suspicion), sure | ~adapted)
    as_decided = Verdicts.of(data, replace(decisions, suspicion=None), names)
    np.testing.assert_array_equal(verdicts.noise, as_decided.noise)
    np.testing.assert_array_equal(verdicts.threshold, as_decided.threshold)
    np.testing.assert_array_equal(verdicts.margin[sure], as_decided.margin[sure])
    doubtful = adapted & ~sure
    np.testing.assert_allclose(verdicts.margin[doubtful], decisions.suspicion[doubtful], atol=1e-12)
    assert verdicts.margin[doubtful].tolist() != as_decided.margin[doubtful].tolist()
    np.testing.assert_array_equal(verdicts.flagged[adapted], (verdicts.margin > 0)[adapted])


@pytest.mark.parametrize("wanted", [1, 7, 400])
@given(
    seed=st.integers(0, 2**32),
    values=st.lists(st.floats(-3, 3) | st.sampled_from([0.0, 0.5]), min_size=1, max_size=60),
)
@settings(max_examples=30, deadline=None)
def test_as_many_as_asked_for_are_flagged_whatever_the_evidence(wanted, seed, values):
    rng, count = np.random.default_rng(seed), len(values)
    data, _, _ = SMALL
    suspicion = np.where(rng.random(count) < 0.5, np.array(values), np.nan)
    score, threshold = rng.random(count), np.full(count, 0.5)
    decisions = Decisions(
        np.zeros(count, np.int32), score > 0.5, 1 - score, threshold, threshold,
        np.where(np.isnan(suspicion), 1.0, 0.0), np.zeros(count, np.int8), suspicion,
    )  # fmt: skip
    verdicts = Verdicts.of(data.part(slice(count)), decisions, ["a"])
    ranks = verdicts.rank
    assert sorted(ranks.tolist()) == list(range(1, count + 1))
    order = np.argsort(ranks)
    margins = verdicts.margin[order]
    assert (np.diff(margins) <= 0).all()
    assert (np.diff(order)[np.diff(margins) == 0] > 0).all(), "of equals the earlier comes first"
    asked, same_ranks = flagged(verdicts, Flag(count=wanted))
    assert asked.noise.sum() == min(wanted, count)
    assert not asked.unsure.any()
    assert same_ranks == ranks.tolist()


SMALL = decide()
