"""Live methods on towers with BatchNorm and on deep transformers."""

import numpy as np
import pytest
import torch
from torch import nn
from towers import BATCH_NORM, batch_norms, live_data, live_run

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.live import base, sotta


@pytest.fixture
def resnet(encoders):
    encoder = encoders["resnet-towers"]
    generator = torch.Generator().manual_seed(0)
    for layer in batch_norms(encoder.model.visual):  # as if trained: no statistics of the start
        layer.running_mean.normal_(0, 0.1, generator=generator)
        layer.running_var.uniform_(0.5, 2, generator=generator)
        layer.weight.data.uniform_(0.5, 1.5, generator=generator)  # OpenAI's start some at zero
    return encoder


@pytest.fixture
def vit(encoders):
    return encoders["vit-towers"]


def assert_untouched(encoder, before):
    state = encoder.model.state_dict()
    assert all(torch.equal(before[name], state[name]) for name in before)
    assert not any(layer.training for layer in encoder.model.modules())
    assert all(layer.momentum == 0.1 for layer in batch_norms(encoder.model.visual))
    assert not any(layer._forward_pre_hooks for layer in encoder.model.modules())


def state_of(encoder):
    return {name: value.clone() for name, value in encoder.model.state_dict().items()}


# Tent


def test_a_layer_that_sees_one_value_a_channel_keeps_its_running_statistics():
    tower = nn.Sequential(nn.BatchNorm2d(2), nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(2)).eval()
    torch.nn.init.constant_(tower[2].running_mean, 3.0)
    image = torch.arange(8.0).reshape(1, 2, 2, 2)
    with base.batch_statistics(tower, 0.5):
        one = tower(image)
        assert [layer.training for layer in tower] == [True, False, False]
        assert tower(torch.cat([image, 2 * image])).abs().max() < 1.1  # two values have a variance
    # Each channel's mean is zero after the first layer: what is left is -3 / sqrt(1 + eps).
    np.testing.assert_allclose(one.flatten().detach(), [-3, -3], rtol=1e-4)
    assert not any(layer.training for layer in tower)
    assert tower[0].momentum == 0.1


# SoTTA


def test_sotta_moves_the_running_statistics_of_every_batchnorm(resnet):
    data = live_data(resnet, "all")
    run = live_run("sotta", update_every=32, confidence=0.0, pipeline="all", memory=64)
    tower, before = resnet.model.visual, state_of(resnet)
    layer4 = [layer for name, layer in tower.named_modules() if name.startswith("layer4")]
    steps = METHODS["sotta"](data, run.options, run.threshold).run()
    next(steps)
    next(steps)  # the first step lies between the two
    for name, layer in tower.named_modules():
        if isinstance(layer, BATCH_NORM):
            assert not torch.equal(layer.running_var, before[f"visual.{name}.running_var"]), name
    assert not any(p.requires_grad for layer in layer4 for p in layer.parameters())
    steps.close()
    assert_untouched(resnet, before)


def test_sotta_freezes_the_last_blocks_or_the_released_codes(vit):
    def frozen(blocks):
        everything = base.norm_layers(vit.model.visual)
        left_out = set(everything) - set(sotta.adapted_layers(vit.model.visual, blocks))
        return {int(name.split(".")[2]) for name in left_out}

    assert frozen("last") == {21, 22, 23}
    assert frozen("9-11") == {9, 10, 11}
