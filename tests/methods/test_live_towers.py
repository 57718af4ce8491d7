"""Live methods on towers with BatchNorm, on deep transformers, and AdaND's detector behind Tent.

Against plain versions written out here, on a copy of the model in torch's own train mode.
"""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from towers import BATCH_NORM, COUNT, batch_norms, decided, live_data, live_run, norm_parameters

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.detectors import adand
from zsntta_cli.methods.detectors.linear import LinearDetector
from zsntta_cli.methods.live import adaptation, sotta
from zsntta_cli.methods.threshold import OnlineThreshold

ATOL = 1e-4  # of ID scores: what Adam makes of rounding, with batch statistics


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


def scores_of(data, tower, images):
    """Logits of a tower's features; dropping nothing, mixing what the tower's mode mixes."""
    features = tower(images)
    unit = features / features.norm(dim=1, keepdim=True)
    text = torch.from_numpy(data.stream.pool.text_features)
    return features, data.stream.pool.logit_scale * unit @ text.T


def entropies(logits, inside=0.0):
    probability = logits.softmax(dim=1)
    return -(probability * (probability + inside).log()).sum(dim=1)


def assert_agree(found, id_score, class_index, is_noise):
    np.testing.assert_allclose(found.id_score, id_score, atol=ATOL)
    assert np.array_equal(found.class_index, class_index)
    assert np.array_equal(found.is_noise, is_noise)


def assert_untouched(encoder, before):
    state = encoder.model.state_dict()
    assert all(torch.equal(before[name], state[name]) for name in before)
    assert not any(layer.training for layer in encoder.model.modules())
    assert all(layer.momentum == 0.1 for layer in batch_norms(encoder.model.visual))
    assert not any(layer._forward_pre_hooks for layer in encoder.model.modules())


def state_of(encoder):
    return {name: value.clone() for name, value in encoder.model.state_dict().items()}


# Tent


@pytest.mark.parametrize("pipeline", ["normal", "gt", "all"])
@pytest.mark.parametrize("size", [32, 1])
def test_tent_has_the_statistics_of_the_whole_batch(resnet, pipeline, size):
    rate = 1e-3 if size > 1 else 1e-4
    data = live_data(resnet, pipeline, COUNT if size > 1 else 12)
    run = live_run("tent", "official", batch_size=size, learning_rate=rate, pipeline=pipeline)
    before = state_of(resnet)
    found = decided(data, run)
    assert_untouched(resnet, before)
    tower = copy.deepcopy(resnet.model.visual).train()
    optimizer = torch.optim.Adam(norm_parameters(tower), rate)
    online, parts = OnlineThreshold(run.threshold, size), []
    for start in range(0, len(data), size):
        rows = slice(start, start + size)
        _, logits = scores_of(data, tower, resnet.inputs[rows])
        probability, class_index = logits.detach().softmax(dim=1).max(dim=1)
        u = 1 - probability.double().numpy()
        is_noise = u > online(u)
        clean = data.truly_clean[rows] if pipeline == "gt" else ~is_noise
        chosen = torch.from_numpy(clean | (pipeline == "all"))
        if chosen.any():
            optimizer.zero_grad()
            entropies(logits[chosen]).mean().backward()
            optimizer.step()
        parts.append((1 - u, class_index.numpy(), is_noise))
    assert_agree(found, *map(np.concatenate, zip(*parts, strict=True)))
    share = found.is_noise.mean()
    assert size == 1 or 0 < share < 1


def test_tent_encodes_a_batch_once_where_batchnorm_mixes_it(resnet, monkeypatch):
    data, sizes = live_data(resnet), []
    encode = type(resnet).image_features
    monkeypatch.setattr(
        type(resnet), "image_features", lambda s, b: sizes.append(len(b)) or encode(s, b)
    )
    decided(data, live_run("tent", batch_size=40))
    assert sizes == [40, 40, 16]


def test_a_layer_that_sees_one_value_a_channel_keeps_its_running_statistics():
    tower = nn.Sequential(nn.BatchNorm2d(2), nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(2)).eval()
    torch.nn.init.constant_(tower[2].running_mean, 3.0)
    image = torch.arange(8.0).reshape(1, 2, 2, 2)
    with adaptation.batch_statistics(tower, 0.5):
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


def test_sotta_is_sharpness_aware_adam_in_train_mode(resnet):
    data = live_data(resnet)
    values = {"update_every": 32, "confidence": 0.3, "memory": 128, "learning_rate": 1e-3}
    run = live_run("sotta", **values)
    before = state_of(resnet)
    found = decided(data, run)
    assert_untouched(resnet, before)
    tower = copy.deepcopy(resnet.model.visual).requires_grad_(False)
    for layer in batch_norms(tower):
        layer.momentum = 0.2
    adapted = [p.requires_grad_() for p in norm_parameters(tower, "layer4")]
    optimizer = torch.optim.Adam(adapted, 1e-3, weight_decay=5e-4)
    online, memory, parts = OnlineThreshold(run.threshold), [], []
    for item in range(COUNT):
        image = resnet.inputs[item : item + 1]
        with torch.no_grad():
            _, logits = scores_of(data, tower.eval(), image)
        probability, class_index = logits.softmax(dim=1).max(dim=1)
        u = 1 - probability.double().numpy()
        is_noise = u > online(u)
        parts.append((1 - u, class_index.numpy(), is_noise))
        if not is_noise[0] and u[0] <= 1 - 0.3:
            memory.append(image)
        if (item + 1) % 32 == 0 and memory:
            tower.train()
            plain_sharpness_step(data, tower, torch.cat(memory), adapted, optimizer)
    assert_agree(found, *map(np.concatenate, zip(*parts, strict=True)))
    assert 0 < len(memory) < COUNT


def plain_sharpness_step(data, tower, images, adapted, optimizer):
    def loss():
        return entropies(scores_of(data, tower, images)[1], 1e-6).mean()

    here = [p.detach().clone() for p in adapted]
    gradients = torch.autograd.grad(loss(), adapted)
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    with torch.no_grad():
        for p, g in zip(adapted, gradients, strict=True):
            p += 0.05 * g / norm
    optimizer.zero_grad()
    loss().backward()
    with torch.no_grad():
        for p, value in zip(adapted, here, strict=True):
            p.copy_(value)
    optimizer.step()


def test_sotta_freezes_the_last_blocks_or_the_released_codes(vit):
    def frozen(blocks):
        everything = adaptation.norm_layers(vit.model.visual)
        left_out = set(everything) - set(sotta.adapted_layers(vit.model.visual, blocks))
        return {int(name.split(".")[2]) for name in left_out}

    assert frozen("last") == {21, 22, 23}
    assert frozen("9-11") == {9, 10, 11}


def test_sottas_frozen_blocks_are_those_that_do_not_change(vit):
    data = live_data(vit, "all")
    values = {"update_every": 32, "confidence": 0.0, "pipeline": "all", "frozen_blocks": "9-11"}
    run, before = live_run("sotta", **values), state_of(vit)
    steps = METHODS["sotta"](data, run.options, run.threshold).run()
    next(steps)
    next(steps)
    state = vit.model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], state[name])}
    steps.close()
    blocks = {int(name.split(".")[3]) for name in changed if "resblocks" in name}
    assert blocks == set(range(24)) - {9, 10, 11}
    assert all(".ln_" in f".{name.split('.', 1)[1]}" for name in changed)


# AdaND with Tent

ADAPTED = {
    "detector_features": "adapted", "tent_batch_size": 24, "update_every": 16, "warmup": 2,
    "tent_learning_rate": 1e-2, "learning_rate": 1e-2,
}  # fmt: skip


@pytest.mark.parametrize("tower", ["resnet", "vit"])
@pytest.mark.parametrize("reevaluate", [True, False])
def test_a_detector_that_shares_tents_encoder_item_by_item(tower, reevaluate, request):
    encoder = request.getfixturevalue(tower)
    data = live_data(encoder, injected=True)
    run = live_run("adand+tent", **ADAPTED, reevaluate=reevaluate)
    before = state_of(encoder)
    found = decided(data, run)
    assert_untouched(encoder, before)
    expected = plain_shared_encoder(data, run, encoder)
    assert_agree(found, *expected)
    frozen = adand.AdaND(data.stream, run.options, run.threshold).push(data.stream)
    assert np.abs(frozen.id_score - found.id_score)[48:].max() > 0.01  # it sees something else
    assert 0 < expected[2][32:].mean() < 1
    # A ViT's features do not change before Tent's first step: those batches are not encoded.
    assert encoder.batch_sizes == ([24] * 4 if tower == "resnet" else [24] * 3)


def plain_shared_encoder(data, run, encoder):
    """ID scores, classes, decisions (T,): the stream one item after another."""
    options, stream = run.options, data.stream
    tower = copy.deepcopy(encoder.model.visual).train()
    tent_step = torch.optim.Adam(norm_parameters(tower), 1e-2)
    layer = initial_layer(stream)
    detector_step = torch.optim.Adam(layer.parameters(), lr=1e-2)
    zero_shot_noise = stream.noise_score > OnlineThreshold(run.threshold)(stream.noise_score)
    online = OnlineThreshold(run.threshold)
    queue, updates, answers = [], 0, []
    for start in range(0, len(data), 24):
        features, logits = scores_of(data, tower, encoder.inputs[start : start + 24])
        update_tent = []
        for row, feature in enumerate(features.detach()):
            item, v = start + row, layer(feature).softmax(dim=0)[0].item()
            in_stage_2 = updates >= options.warmup
            label = 0 if zero_shot_noise[item] or stream.injected[item] else 1
            queue.append((feature, label))
            if len(queue) == options.update_every:
                inputs, labels = torch.stack([f for f, _ in queue]), [y for _, y in queue]
                detector_step.zero_grad()
                nn.functional.cross_entropy(layer(inputs), torch.tensor(labels)).backward()
                detector_step.step()
                updates, queue = updates + 1, []
                if options.reevaluate:
                    v = layer(feature).softmax(dim=0)[0].item()
            if in_stage_2:
                is_noise = v > online(np.array([v]))[0]
                answers.append((1 - v, int(logits[row].argmax()), is_noise))
            else:
                u, is_noise = stream.noise_score[item], zero_shot_noise[item]
                answers.append((1 - u, stream.class_index[item], is_noise))
            update_tent.append(in_stage_2 and not is_noise and not stream.injected[item])
        if any(update_tent):
            tent_step.zero_grad()
            entropies(logits[torch.tensor(update_tent)]).mean().backward()
            tent_step.step()
    return [np.array(column) for column in zip(*answers, strict=True)]


def initial_layer(stream):
    """`Linear(D, 2)` as the detector starts: only the difference of its rows matters."""
    dim = stream.pool.image_features.shape[1]
    start = LinearDetector.random(dim, stream.seed).weight.astype(np.float32)
    layer = nn.Linear(dim, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(np.stack([start[:-1] / 2, -start[:-1] / 2])))
        layer.bias.copy_(torch.tensor([start[-1] / 2, -start[-1] / 2]))
    return layer
