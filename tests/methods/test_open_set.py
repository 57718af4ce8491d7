"""UniEnt and OSTTA: their losses by hand, which samples they choose, what they change."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from towers import (
    assert_later_items_change_nothing,
    assert_norms_change_alone,
    live_data,
    live_run,
)

from zsntta_cli.methods.live.open_set import crowd_entropy, id_probability, unified_entropy
from zsntta_cli.methods.live.settings import UniEnt

COUNT = 60
QUICK = {"batch_size": 16, "learning_rate": 0.01}
METHOD_NAMES = ("unient", "ostta")


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_no_decision_depends_on_what_comes_in_later_batches(vit, method):
    data = live_data(vit, count=COUNT)
    assert_later_items_change_nothing(vit, data, live_run(method, **QUICK), 48)


@pytest.mark.parametrize("method", METHOD_NAMES)
@pytest.mark.parametrize("tower", ["resnet-towers", "shallow-towers"])
def test_only_normalisation_layers_change_and_all_are_as_before_afterwards(encoders, tower, method):
    data = live_data(encoders[tower], count=COUNT)
    run = live_run(method, **QUICK)
    assert_norms_change_alone(encoders[tower], data, run, 1, counters=True)


# Their parts


def batch_of(probabilities):
    return torch.tensor(probabilities).log().requires_grad_()


H = {p: -(p * np.log(p) + (1 - p) * np.log(1 - p)) for p in (0.5, 0.6, 0.7, 0.9)}


def test_ostta_chooses_what_the_adapted_encoder_is_no_less_sure_of():
    batch = batch_of([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]])
    before = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6]]).log()
    # As sure; surer, but of another class than at first; less sure.
    loss, chosen = crowd_entropy(batch, before, 0.5)
    assert chosen.tolist() == [True, False, False]
    assert loss.item() == pytest.approx(H[0.9] - 0.5 * H[0.6], rel=1e-5)
    loss, chosen = crowd_entropy(batch, torch.tensor([[9.0, 0.0]] * 3), 0.5)
    assert not chosen.any()
    assert loss.item() == pytest.approx(-0.5 * H[0.6], rel=1e-5)  # and not nan


def test_unified_entropy_by_hand():
    batch = batch_of([[0.9, 0.1], [0.5, 0.5]])
    options = UniEnt.Settings(unient_marginal=0.3, unient_ood=0.2)
    loss, likely = unified_entropy(batch, np.array([0.8, 0.3]), options)
    assert likely.tolist() == [True, False]
    assert loss.item() == pytest.approx(H[0.9] - 0.2 * H[0.5] - 0.3 * H[0.7], rel=1e-5)
    soft = replace(options, unient_soft=True)
    loss, _ = unified_entropy(batch, np.array([0.8, 0.3]), soft)
    weighted = (0.8 - 0.2 * 0.2) * H[0.9] + (0.3 - 0.2 * 0.7) * H[0.5]
    assert loss.item() == pytest.approx(weighted / 2 - 0.3 * H[0.7], rel=1e-5)
    for p, mean in ((0.9, (H[0.9] + H[0.5]) / 2), (0.1, -0.2 * (H[0.9] + H[0.5]) / 2)):
        loss, _ = unified_entropy(batch, np.full(2, p), options)
        assert loss.item() == pytest.approx(mean - 0.3 * H[0.7], rel=1e-5)  # one group is empty


def test_the_mixture_tells_two_groups_apart():
    generator = np.random.default_rng(0)
    high = generator.random(64) < 0.4
    scores = np.where(high, 0.3, 0.2) + 0.01 * generator.normal(size=64)
    found = id_probability(scores)
    np.testing.assert_array_equal(found >= 0.5, high)
    np.testing.assert_allclose(found, id_probability(100 * scores), atol=1e-9)
    np.testing.assert_array_equal(id_probability(np.array([2.0, 1.0])) >= 0.5, [True, False])
    assert id_probability(np.array([0.2, 0.2])) is None
    assert id_probability(np.array([0.2])) is None
