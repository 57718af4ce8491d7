"""What the paper's released code was given for its test vectors: drawn again from the seeds.

Its numbers are in fixtures/; its inputs are 30 times as large, and random. Uniform draws are the
same bits everywhere, normal ones up to a last bit; `probe` in each file holds some of the
original's values, which the draws are held to.
"""

import math
import zlib

import numpy as np
import torch
from made import FIXTURES
from torch.nn import init

_WIDTH, _EMBED, _VOCABULARY = 64, 64, 49408
_LAYERS, _TEXT_LAYERS = 12, 2
_GAIN = 1.8  # of all weights: features of a CLIP as it is initialised hardly differ


def load(name):
    """The arrays of a fixture."""
    with np.load(FIXTURES / f"{name}.npz") as file:
        return dict(file)


def clip_state():
    """The state dict of a small CLIP, in OpenAI's format; all words but those in use are zero."""
    stored = load("clip")
    state = {n: torch.from_numpy(stored[n]) for n in stored if n not in ("probe", "ids", "rows")}
    state["token_embedding.weight"] = torch.zeros(_VOCABULARY, _WIDTH)
    state["token_embedding.weight"][stored["ids"]] = torch.from_numpy(stored["rows"])
    weights = _Draws(5).clip("vit", _LAYERS)
    drawn = {name: _GAIN * weight for name, weight in weights.items() if name not in state}
    assert_probed(drawn.values(), stored["probe"])
    return state | drawn


def assert_probed(tensors, probe):
    drawn = torch.cat([tensor.flatten()[:4] for tensor in tensors])
    np.testing.assert_allclose(drawn, probe, atol=1e-6)


class _Draws:
    """Weights as OpenAI's `CLIP` initialises itself, in the order of its draws."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape, std=_WIDTH**-0.5):
        return std * torch.randn(shape, generator=self.generator)

    def uniform(self, *shape):  # torch's own of convolutions and linear layers
        return init.kaiming_uniform_(torch.empty(shape), a=math.sqrt(5), generator=self.generator)

    def linear(self, name, rows, columns):
        yield f"{name}.weight", self.uniform(rows, columns)
        bound = columns**-0.5
        bias = torch.empty(rows).uniform_(-bound, bound, generator=self.generator)
        yield f"{name}.bias", bias

    def blocks(self, prefix, layers):
        for i in range(layers):
            block = f"{prefix}transformer.resblocks.{i}"
            yield from self.linear(f"{block}.attn.out_proj", _WIDTH, _WIDTH)
            in_proj = torch.empty(3 * _WIDTH, _WIDTH)
            init.xavier_uniform_(in_proj, generator=self.generator)
            yield f"{block}.attn.in_proj_weight", in_proj
            yield from self.linear(f"{block}.mlp.c_fc", 4 * _WIDTH, _WIDTH)
            yield from self.linear(f"{block}.mlp.c_proj", _WIDTH, 4 * _WIDTH)
            yield f"{block}.attn.in_proj_bias", torch.zeros(3 * _WIDTH)
            yield f"{block}.attn.out_proj.bias", torch.zeros(_WIDTH)
            for norm in ("ln_1", "ln_2"):
                yield from _layer_norm(f"{block}.{norm}")

    def vit(self, layers):
        yield "visual.conv1.weight", self.uniform(_WIDTH, 3, 8, 8)
        yield "visual.class_embedding", self.normal(_WIDTH)
        yield "visual.positional_embedding", self.normal(17, _WIDTH)
        yield from self.blocks("visual.", layers)
        yield "visual.proj", self.normal(_WIDTH, _EMBED)
        for norm in ("ln_pre", "ln_post"):
            yield from _layer_norm(f"visual.{norm}")

    def resnet(self, width):
        """With one block a stage; without its BatchNorm."""
        stem = [(width // 2, 3), (width // 2, width // 2), (width, width // 2)]
        for i, (rows, columns) in enumerate(stem):
            yield f"visual.conv{i + 1}.weight", self.uniform(rows, columns, 3, 3)
        columns = width
        for stage in range(4):
            block, inner = f"visual.layer{stage + 1}.0", width << stage
            yield f"{block}.conv1.weight", self.uniform(inner, columns, 1, 1)
            yield f"{block}.conv2.weight", self.uniform(inner, inner, 3, 3)
            yield f"{block}.conv3.weight", self.uniform(4 * inner, inner, 1, 1)
            yield f"{block}.downsample.0.weight", self.uniform(4 * inner, columns, 1, 1)
            columns = 4 * inner
        pool = "visual.attnpool"
        yield f"{pool}.positional_embedding", self.normal(5, columns, std=1) / columns**0.5
        for name in "kqvc":  # the weights are drawn once more
            rows = _EMBED if name == "c" else columns
            yield from self.linear(f"{pool}.{name}_proj", rows, columns)

    def clip(self, tower, size):
        weights = dict(getattr(self, tower)(size))
        text = dict(self.blocks("", _TEXT_LAYERS))  # its matrices are drawn once more
        weights |= {name: text[name] for name in text if text[name].dim() == 1}
        weights |= _layer_norm("ln_final")
        self.normal(_VOCABULARY, _WIDTH)
        weights["token_embedding.weight"] = self.normal(_VOCABULARY, _WIDTH, std=0.02)
        weights["positional_embedding"] = self.normal(77, _WIDTH, std=0.01)
        for name in [f"visual.attnpool.{n}_proj.weight" for n in "qkvc" if tower == "resnet"]:
            rows, columns = weights[name].shape
            weights[name] = self.normal(rows, columns, std=columns**-0.5)
        deep, wide = _WIDTH**-0.5 * (2 * _TEXT_LAYERS) ** -0.5, (2 * _WIDTH) ** -0.5
        for i in range(_TEXT_LAYERS):
            block = f"transformer.resblocks.{i}"
            weights[f"{block}.attn.in_proj_weight"] = self.normal(3 * _WIDTH, _WIDTH)
            weights[f"{block}.attn.out_proj.weight"] = self.normal(_WIDTH, _WIDTH, std=deep)
            weights[f"{block}.mlp.c_fc.weight"] = self.normal(4 * _WIDTH, _WIDTH, std=wide)
            weights[f"{block}.mlp.c_proj.weight"] = self.normal(_WIDTH, 4 * _WIDTH, std=deep)
        weights["text_projection"] = self.normal(_WIDTH, _EMBED)
        return weights


def _layer_norm(name):
    return [(f"{name}.weight", torch.ones(_WIDTH)), (f"{name}.bias", torch.zeros(_WIDTH))]


def live_inputs():
    """Encoder inputs (N, 3, 32, 32), a smooth pattern a class and noise; their views for TPT."""
    stored = load("live")
    generator = torch.Generator().manual_seed(6)
    torch.rand(320, generator=generator)  # the classes, which are stored; OOD is the last pattern
    patterns = torch.randn(6, 3, 4, 4, generator=generator)
    smooth = torch.nn.functional.interpolate(
        patterns, size=(32, 32), mode="bilinear", align_corners=False
    )
    noise = torch.randn(320, 3, 32, 32, generator=generator)
    images = 1.5 * smooth[stored["targets"].astype(int)] + 0.6 * noise
    generator = torch.Generator().manual_seed(7)
    views = images[:24, None] + 0.5 * torch.randn(24, 15, 3, 32, 32, generator=generator)
    for drawn, probe in ((images, stored["probe"]), (views, stored["tpt/probe"])):
        np.testing.assert_allclose(drawn.flatten()[::9973], probe, atol=1e-5)
    return images, views


def tower(name):
    """State dict, encoder inputs (N, 3, H, H) and classes (N,) of `resnet` or of `deep`, a ViT.

    A pattern a class, of independent pixels, and noise; OOD, -1, is the last pattern.
    """
    stored = part(load("live-towers"), name)
    state = _Draws(0).clip(*(("resnet", 16) if name == "resnet" else ("vit", 24)))
    state["logit_scale"] = torch.tensor(math.log(100 if name == "resnet" else 60))
    if name == "resnet":
        state |= _batch_norms(state, stored["mean"], stored["variance"])
    assert_probed(state.values(), stored["probe/state"])
    size = 64 if name == "resnet" else 32
    generator = torch.Generator().manual_seed(2)
    patterns = torch.randn(6, 3, size, size, generator=generator)
    targets = torch.randint(0, 6, (192,), generator=generator)
    noise = torch.randn(192, 3, size, size, generator=generator)
    images = (patterns[targets] + 0.7 * noise).half().float()  # as they are stored
    np.testing.assert_allclose(images.flatten()[::9973], stored["probe/images"], atol=4e-3)
    return state, images, np.where(targets == 5, -1, targets)


def checksum(state, images):
    """Of the bits of a tower's weights and input: normal draws' last ones need AVX2."""
    weights = torch.cat([weight.flatten() for weight in state.values()])
    return zlib.crc32(images.numpy(), zlib.crc32(weights.numpy()))


def part(arrays, prefix):
    """The arrays below a prefix, by the rest of their names."""
    start = f"{prefix}/"
    return {n.removeprefix(start): arrays[n] for n in arrays if n.startswith(start)}


def _batch_norms(convolutions, means, variances):
    """BatchNorm behind each convolution; its running statistics were computed, and are stored."""
    generator, start = torch.Generator().manual_seed(1), 0
    for name, weight in list(convolutions.items()):
        if weight.dim() != 4:
            continue
        name = name.replace("conv", "bn").replace("downsample.0", "downsample.1")
        norm, count = name.removesuffix(".weight"), len(weight)
        yield f"{norm}.weight", 0.75 + 0.5 * torch.rand(count, generator=generator)
        yield f"{norm}.bias", 0.2 * torch.randn(count, generator=generator)
        torch.randn(count, generator=generator)  # other statistics
        torch.rand(count, generator=generator)
        yield f"{norm}.running_mean", torch.from_numpy(means[start : start + count])
        yield f"{norm}.running_var", torch.from_numpy(variances[start : start + count])
        start += count


def stream(name):
    """A stream of the cached methods, with its features (T, D).

    These are a point that all share, one of the group and noise on a sphere, of radius 10 or, of
    injected items, 1.
    """
    stored = load(f"stream-{name}")
    features = np.empty((len(stored["group"]), 64), np.float32)
    for kind, (skipped, rows, radius) in enumerate(stored["draws"].tolist()):
        generator = torch.Generator().manual_seed(int(stored["seed"]))
        torch.rand(int(skipped), generator=generator)
        normal = torch.randn(int(rows), 64, generator=generator)
        sphere = radius * torch.nn.functional.normalize(normal).numpy()
        items = stored["kind"] == kind
        features[items] = sphere[stored["row"][items]]
    features += stored["shared"]
    features += stored["directions"][stored["group"]] * stored["amount"][:, None]
    np.testing.assert_allclose(features.ravel()[::997], stored["probe"], atol=1e-5)
    return {**stored, "features": features}
