"""What cull says of whether there is noise at all: none in clean folders, sure where it is far."""

import pickle

import numpy as np
import pytest

from zsntta_cli import OnlineDetector
from zsntta_cli.methods.base import EVIDENCE_KINDS, NONE, OTHER_KIND, RARE
from zsntta_cli.methods.detectors.cull import Shares, _groups, _rare
from zsntta_cli.methods.scores import unit

DIM = 64
ONE, FEW, UNEVEN, MANY = (
    (1, 1.0),
    (3, 1.0),
    (12, 0.7),
    (40, 0.95),
)  # classes, each to the one before


def folder(seed, count, ratio, classes=12, rate=1.0):
    """Features of images around their classes, which share a direction, and of noise without it;
    text; which are noise.
    """
    rng = np.random.default_rng(seed)
    text, away = unit(rng.normal(size=(classes, DIM)) + 1), unit(rng.normal(size=(3, DIM)))
    noise, share = round(count * ratio), rate ** np.arange(classes)
    labels = rng.choice(classes, count - noise, p=share / share.sum())
    centers = np.concatenate([text[labels], away[rng.integers(3, size=noise)]])
    features = centers + rng.uniform(0.05, 0.15, (count, 1)) * rng.normal(size=(count, DIM))
    is_noise = np.arange(count) >= count - noise
    return features.astype(np.float32), text.astype(np.float32), is_noise


def verdicts_on(features, text):
    return OnlineDetector(text, 30.0, "cull").decide_all(features)


@pytest.mark.parametrize("count", [60, 200, 1000])
@pytest.mark.parametrize("kind", [ONE, FEW, UNEVEN, MANY])
@pytest.mark.parametrize("seed", range(3))
def test_a_clean_folder_has_no_noise(count, kind, seed):
    features, text, _ = folder(seed, count, 0, *kind)
    verdicts = verdicts_on(features, text)
    assert (verdicts.evidence < 0.5).all()
    assert (verdicts.evidence_kind == NONE).all()
    assert not verdicts.noise.any()
    np.testing.assert_array_equal(verdicts.unsure, verdicts.score > verdicts.threshold)


@pytest.mark.parametrize("count", [60, 200, 1000])
@pytest.mark.parametrize("kind", [ONE, FEW, UNEVEN, MANY])
@pytest.mark.parametrize("ratio", [0.02, 0.05, 0.25, 0.5])
def test_far_noise_is_called_noise(count, kind, ratio):
    features, text, is_noise = folder(7, count, ratio, *kind)
    verdicts = verdicts_on(features, text)
    assert (verdicts.evidence >= 0.5).all()
    assert verdicts.noise[is_noise].mean() > 0.5
    assert verdicts.noise[~is_noise].mean() < 0.1
    assert not verdicts.unsure.any()
    if ratio != 0.05 and count > 60:
        assert (verdicts.evidence_kind == (RARE if ratio < 0.05 else OTHER_KIND)).all()
    assert EVIDENCE_KINDS[RARE] == "rare and far"


def test_evidence_comes_with_the_noise():
    features, text, _ = folder(1, 900, 1 / 3)
    detector = OnlineDetector(text, 30.0, "cull")
    order = np.random.default_rng(0).permutation(np.arange(300, 900))
    assert not detector.update(features[:300]).noise.any()
    assert not detector.evidence.is_sure
    assert detector.update(features[order]).noise.any()
    assert detector.evidence == (1.0, OTHER_KIND)


def test_evidence_is_kept_in_a_pickle():
    features, text, _ = folder(2, 300, 0.25)
    detector = OnlineDetector(text, 30.0, "cull")
    detector.update(features)
    other = pickle.loads(pickle.dumps(detector))
    assert other.evidence == detector.evidence
    assert other.evidence.is_sure


# --- the parts


def test_groups_by_hand():
    many = 10**12
    assert _groups(2 / np.pi, many) == _groups(0.5, many) == 0
    assert _groups(0.751, many) == _groups(1.0, 100) == 1
    assert _groups((2 / np.pi + 0.75) / 2, many) == pytest.approx(0.5, abs=1e-4)
    assert _groups(0.7, 100) == pytest.approx((0.65 - 2 / np.pi) / (0.75 - 2 / np.pi))


def test_shares_by_hand():
    doubtful, rejected = np.array([1, 1, 0, 0, 0], bool), np.array([0, 1, 1, 1, 0], bool)
    shares = Shares.of(doubtful, rejected)
    assert shares == Shares(own=0.4, zero_shot=0.6, both=0.2)
    # Without two groups 0.2, and a fifth of what ZS-CLIP rejects more, as that is 60 %.
    assert shares.noise(0.0) == pytest.approx(0.2 + 0.2 * 0.4)
    assert shares.noise(1.0) == pytest.approx(0.4)
    assert shares.noise(0.5) == pytest.approx(0.34)
    assert Shares(0.45, 0.13, 0.1).noise(0.0) == pytest.approx(0.1)  # Otsu halves a Gaussian


@pytest.mark.parametrize(
    ("shares", "groups", "rare", "expected"),
    [
        (Shares(0.4, 0.6, 0.3), 0.0, 0.0, (1 / 3, NONE)),
        (Shares(0.4, 0.6, 0.3), 0.0, 1.0, (1.0, RARE)),
        (Shares(0.1, 0.5, 0.1), 0.1, 0.0, (0.8, RARE)),  # the split takes back four fifths
        (Shares(0.3, 0.05, 0.0), 0.0, 0.0, (0.0, NONE)),
        (Shares(0.3, 0.05, 0.0), 0.0, 1.0, (1.0, RARE)),
        (Shares(0.3, 0.4, 0.3), 0.9, 0.3, (0.9, OTHER_KIND)),
        (Shares(0.3, 0.0, 0.0), 0.0, 0.4, (0.4, NONE)),
    ],
)
def test_evidence_by_hand(shares, groups, rare, expected):
    assert shares.evidence(groups, rare) == pytest.approx(expected)


@pytest.mark.parametrize(("images", "expected"), [(0, 0), (4, 1)])
def test_a_few_far_images_are_rare(images, expected):
    scores = np.clip(np.random.default_rng(0).normal(size=1000), -2.5, 2.5)
    scores[:images] = 8
    assert _rare(scores, 6.0) == expected
    assert _rare(3 * scores - 5, 6.0) == pytest.approx(expected)


def test_rare_by_hand():
    # Skewness and kurtosis of one among n equal others are (n - 1) / sqrt(n), n - 1 + 1 / n.
    scores = np.array([0, 0, 0, 0, 1.0])
    tail = 3 / 2 + 3.25
    assert _rare(scores, tail / 1.05) == pytest.approx(0.4)
    assert _rare(np.ones(9), 6.0) == 0
