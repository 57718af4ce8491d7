"""ROSITA: one step by hand, its split, its banks, what it changes and when."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import towers
from towers import (
    assert_later_items_change_nothing,
    assert_norms_change_alone,
    decided,
    live_data,
    live_run,
    norm_parameters,
)

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.live import rosita

COUNT = 60
QUICK = {"learning_rate": 0.02, "rosita_neighbours": 2, "rosita_undesired": 8}


@pytest.fixture(autouse=True)
def crops(monkeypatch):
    monkeypatch.setattr(rosita, "load_views", towers.noisy_crops)


def test_injected_noise_is_scored_and_never_learned_from(vit):
    data = live_data(vit, count=COUNT, injected=True)
    run = live_run("rosita", **QUICK)
    found = decided(data, run)
    alone = replace(data, stream=replace(data.stream, injected=np.ones(len(data), bool)))
    frozen = decided(alone, run)
    cosines = alone.stream.zero_shot.class_index
    np.testing.assert_array_equal(frozen.class_index, cosines)
    assert not np.array_equal(found.id_score, frozen.id_score)


def test_no_decision_depends_on_what_comes_later(vit):
    data = live_data(vit, count=COUNT)
    assert_later_items_change_nothing(vit, data, live_run("rosita", **QUICK), 40)


@pytest.mark.parametrize("tower", ["resnet-towers", "shallow-towers"])
def test_only_normalisation_layers_change_and_all_are_as_before_afterwards(encoders, tower):
    data = live_data(encoders[tower], count=COUNT)
    assert_norms_change_alone(encoders[tower], data, live_run("rosita", **QUICK), 40)


def test_one_step_by_hand(vit):
    """The first desired item that is sure: a step down the gradient of two cross-entropies."""
    data, run = live_data(vit, count=COUNT), live_run("rosita", **QUICK)
    parameters = norm_parameters(vit.model.visual)
    before = [p.detach().clone() for p in parameters]
    steps = METHODS["rosita"](data, run.options, run.threshold).run()
    for item, decisions in enumerate(steps):  # noqa: B007 -- the last ones are looked at
        after = [p.detach().clone() for p in parameters]
        if not all(map(torch.equal, after, before)):
            break
    steps.close()
    assert not decisions.is_noise[0]
    crop = next(crop for i, crop in towers.noisy_crops(data, np.arange(COUNT)) if i == item)
    label = cosines(vit, data, item).argmax()
    loss = -sum(cosines(vit, data, x).log_softmax(dim=0)[label] for x in (item, crop))
    gradients = torch.autograd.grad(loss, parameters)
    for p, g, found in zip(before, gradients, after, strict=True):
        torch.testing.assert_close(found, p - 0.02 * g, atol=1e-6, rtol=1e-4)


def cosines(encoder, data, image):
    """Cosines (C,) of an item, or of an encoder input."""
    image = encoder.inputs[image : image + 1] if isinstance(image, int) else image
    [feature] = encoder.model.encode_image(image)
    return torch.from_numpy(data.stream.text_features) @ feature / feature.norm()


# Its parts
