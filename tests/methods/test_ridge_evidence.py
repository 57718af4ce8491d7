"""What ridge says of whether there is noise at all: none in clean folders, sure where it is far."""

import numpy as np
import pytest

from zsntta_cli import OnlineDetector
from zsntta_cli.methods.base import EVIDENCE_KINDS, NONE, OTHER_KIND, RARE
from zsntta_cli.methods.detectors.ridge import rule
from zsntta_cli.methods.settings import RidgeSettings

DIM = 64
ONE, FEW, UNEVEN, MANY = (
    (1, 1.0),
    (3, 1.0),
    (12, 0.7),
    (40, 0.95),
)  # classes, each to the one before


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


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
    return OnlineDetector(text, 30.0, "ridge").decide_all(features)


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
    if ratio != 0.05:
        assert (verdicts.evidence_kind == (RARE if ratio < 0.05 else OTHER_KIND)).all()
    assert EVIDENCE_KINDS[RARE] == "rare and far"


def test_evidence_comes_with_the_noise():
    features, text, _ = folder(1, 900, 1 / 3)
    detector = OnlineDetector(text, 30.0, "ridge")
    order = np.random.default_rng(0).permutation(np.arange(300, 900))
    assert not detector.update(features[:300]).noise.any()
    assert not detector.evidence.is_sure
    assert detector.update(features[order]).noise.any()
    assert detector.evidence == (1.0, OTHER_KIND)


def test_evidence_is_kept_in_a_state():
    features, text, _ = folder(2, 300, 0.25)
    detector, other = (OnlineDetector(text, 30.0, "ridge") for _ in range(2))
    detector.update(features)
    other.restore(detector.state())
    assert other.evidence == detector.evidence
    assert other.evidence.is_sure


# --- the parts


def ring_views(z, q):
    """Views (M, 4) of mean 0 and variance 1 whose scores of the single image are all q."""
    z, q = ((x - x.mean()) / x.std() for x in (z, q))
    return np.column_stack([z, q, q, q])


def trust_in(v, classes=5):
    return rule.Trust.in_ring(v, v[:, 1], v[:, 1], classes, RidgeSettings())


def flat_views(count):
    """Views of two equal humps in q, which z follows loosely."""
    rng = np.random.default_rng(0)
    q = np.where(np.arange(count) % 2, 1.0, -1.0) + 0.3 * rng.normal(size=count)
    return ring_views(0.6 * q + 0.8 * rng.normal(size=count), q)


def test_two_equal_humps_that_z_follows_are_another_kind():
    assert trust_in(flat_views(2000)).common == 1
    assert trust_in(flat_views(2000), classes=1).common == 0  # of one class z is q


def test_images_that_are_shown_again_are_no_new_evidence():
    few = flat_views(40)
    assert trust_in(few).common == 0
    assert trust_in(np.tile(few, (50, 1))).common == 0


def test_two_groups_in_z_need_the_single_image_to_agree():
    rng = np.random.default_rng(0)
    group = rng.random(2000) < 0.2  # a class that z sees
    z, q = 8 * group + rng.normal(size=2000), rng.normal(size=2000)
    assert rule.sarle(ring_views(z, q)[:, 0]) > 0.8
    assert trust_in(ring_views(z, q)).common == 0
    assert trust_in(ring_views(z, q + 6 * group)).common == 1


@pytest.mark.parametrize(("images", "sure"), [(1, False), (4, True)])
def test_a_far_tail_is_rare_noise_from_a_few_images_on(images, sure):
    rng = np.random.default_rng(0)
    q = np.clip(rng.normal(size=1000), -2.5, 2.5)
    assert trust_in(ring_views(rng.normal(size=1000), q)).far == 0
    q[:images] = 6
    trust = trust_in(ring_views(rng.normal(size=1000), q))
    assert (trust.far >= 0.5) == sure
    assert trust.evidence.kind == (RARE if sure else NONE)


def test_a_camera_that_sees_the_same_has_no_spread_to_be_far_from():
    q = np.zeros(400)
    q[:100] = np.random.default_rng(0).normal(size=100)
    assert trust_in(ring_views(np.random.default_rng(1).normal(size=400), q)).far == 0


def test_sarle_by_hand():
    rng = np.random.default_rng(0)
    shapes = {1.0: np.arange(100.0) % 2, 5 / 9: rng.random(100_000), 1 / 3: rng.normal(size=10**5)}
    for expected, x in shapes.items():
        assert rule.sarle((x - x.mean()) / x.std()) == pytest.approx(expected, abs=0.02)
