"""How much ridge rejects of an easy, uneven set, whose doubtful images are a group of their own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.methods.detectors.ridge import rule
from zsntta_cli.methods.detectors.ridge.items import RidgeItems
from zsntta_cli.methods.settings import RidgeSettings

COUNT = 2000


class PlainViews:
    """A regression whose z is the first coordinate and whose q is minus the largest logit."""

    def direction(self):
        return np.array([1, 0], np.float32)

    def class_logits(self):
        return np.zeros(2), np.ones(2)


def ring_of(doubt, z, rejected):
    """A ring whose single-image scores are all `doubt` (N,), whose z is given, and of which ZS-CLIP
    rejects the most doubtful share.
    """
    features = np.column_stack([z, np.zeros(len(z))]).astype(np.float32)
    u = np.clip(0.1 + 0.02 * doubt, 0, 1)
    noise = doubt > np.quantile(doubt, 1 - rejected)
    return RidgeItems(
        features, np.column_stack([u, doubt, doubt]), -doubt[:, None].astype(np.float32),
        np.zeros((len(z), 1), np.int32), noise, np.zeros((len(z), 0)),
    )  # fmt: skip


def rejected_share(ring):
    """The share of the ring that the next rule calls noise."""
    learned = rule.next_rule(ring, PlainViews(), np.ones(2), RidgeSettings())
    return learned.answer(ring).is_noise.mean(), learned.trust


@pytest.mark.parametrize("seed", range(5))
def test_doubt_without_two_groups_rejects_no_more_than_zs_clip(seed):
    rng = np.random.default_rng(seed)
    doubt = rng.normal(size=COUNT)
    z = 0.8 * doubt + 0.6 * rng.normal(size=COUNT)  # what doubtful images share agrees with doubt
    share, trust = rejected_share(ring_of(doubt, z, rejected=0.13))
    # Otsu halves a Gaussian: without the guard half of a clean set was noise.
    assert trust.gate == 1
    assert (doubt > rule.otsu(doubt)).mean() > 0.4
    assert trust.apart == 0
    assert share == pytest.approx(0.13, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_noise_in_a_group_of_its_own_is_rejected_beyond_zs_clips_share(seed):
    rng = np.random.default_rng(seed)
    is_noise = rng.random(COUNT) < 0.4
    doubt = rng.normal(size=COUNT) + 5 * is_noise
    z = rng.normal(size=COUNT) + 5 * is_noise
    share, trust = rejected_share(ring_of(doubt, z, rejected=0.13))
    assert trust.apart == 1
    assert share == pytest.approx(is_noise.mean(), abs=0.03)


def test_classes_that_part_z_do_not_make_their_doubt_noise():
    # Otsu's share of z would open the guard here (tau_2 of the first trials).
    rng = np.random.default_rng(0)
    doubt = rng.normal(size=COUNT)
    group = doubt > 0  # three breeds: z sees the breeds, and one of them is more doubtful
    _, trust = rejected_share(ring_of(doubt, rng.normal(size=COUNT) + 6 * group, rejected=0.05))
    assert trust.apart == 0


def test_the_share_between_two_sides_by_hand():
    # 0, 0, 3, 3: all of the variance; 0, 1, 2, 3: 4 of 5.
    assert rule.otsu_share(np.array([0.0, 3, 0, 3])) == pytest.approx(1)
    assert rule.otsu_share(np.arange(4.0)) == pytest.approx(0.8)
    gaussian = np.random.default_rng(0).normal(size=100_000)
    assert rule.otsu_share(gaussian) == pytest.approx(2 / np.pi, abs=0.01)
    assert rule.otsu_share(np.random.default_rng(0).random(100_000)) == pytest.approx(
        0.75, abs=0.01
    )


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=40), st.floats(0.1, 10), st.floats(-9, 9)
)
def test_the_share_is_a_share_whatever_the_scale(values, scale, shift):
    scores = np.array(values)
    share = rule.otsu_share(scores)
    assert -1e-9 <= share <= 1 + 1e-9
    if scores.std() > 1e-3:
        assert rule.otsu_share(scale * scores + shift) == pytest.approx(share, abs=1e-6)
