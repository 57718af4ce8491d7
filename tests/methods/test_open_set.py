"""UniEnt, OSTTA and ROSITA: losses by hand, what they choose, and what they never learn from."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import towers
from streams import assert_same, of_features
from towers import decided, live_run

from zsntta_cli.methods.live import rosita
from zsntta_cli.methods.live.open_set import crowd_entropy, id_probability, unified_entropy
from zsntta_cli.methods.live.settings import UniEnt
from zsntta_cli.methods.scores import unit

COUNT = 60
BATCHES = {"batch_size": 16, "learning_rate": 0.01}
QUICK = {"learning_rate": 0.02, "rosita_neighbours": 2, "rosita_undesired": 8}
CASES = {"unient": (BATCHES, 48), "ostta": (BATCHES, 48), "rosita": (QUICK, 40)}


@pytest.fixture(autouse=True)
def crops(monkeypatch):
    monkeypatch.setattr(rosita, "load_views", towers.noisy_crops)


def live_data(encoder, injected=False):
    """Noise of another mean for each item; every third one injected where that is asked for."""
    generator = np.random.default_rng(0)
    shape = (COUNT, 3, encoder.image_size, encoder.image_size)
    images = generator.normal(size=shape) + 3 * generator.normal(size=(COUNT, 3, 1, 1))
    encoder.inputs = torch.from_numpy(images.astype(np.float32))
    features = encoder.encode_images(encoder.inputs)
    text = unit(generator.normal(size=(4, features.shape[1])))
    stream = of_features(features, text, 15.0, np.arange(COUNT) % 3 == 2 if injected else None)
    return towers.Ready(stream, encoder, None, list("abcd"), "a {}.")


@pytest.mark.parametrize("method", CASES)
def test_no_decision_depends_on_what_comes_in_later_batches_or_whether_any_does(vit, method):
    values, now = CASES[method]  # an item where a batch begins
    data, run = live_data(vit), live_run(method, **values)
    whole, part = decided(data, run), slice(now)
    shorter = replace(data, stream=data.stream.part(part))
    assert_same(decided(shorter, run), whole.part(part))
    vit.inputs[now:] = torch.randn(vit.inputs[now:].shape, generator=torch.manual_seed(2))
    other = decided(data, run)
    assert_same(other.part(part), whole.part(part))
    assert not np.array_equal(other.id_score[now:], whole.id_score[now:])


# ROSITA


def test_injected_noise_is_scored_and_never_learned_from(vit):
    data = live_data(vit, injected=True)
    run = live_run("rosita", **QUICK)
    found = decided(data, run)
    alone = replace(data, stream=replace(data.stream, injected=np.ones(len(data), bool)))
    frozen = decided(alone, run)
    cosines = alone.stream.zero_shot.class_index
    np.testing.assert_array_equal(frozen.class_index, cosines)
    assert not np.array_equal(found.id_score, frozen.id_score)


# UniEnt, OSTTA


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
