"""What the paper's released code was given for its test vectors: drawn again from the seeds.

Its numbers are in fixtures/; its inputs are 30 times as large, and random. Uniform draws are the
same bits everywhere, normal ones up to a last bit; `probe` in each file holds some of the
original's values, which the draws are held to.
"""

import math

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
    state |= {name: _GAIN * weight for name, weight in _clip_weights().items()}
    state["token_embedding.weight"] = torch.zeros(_VOCABULARY, _WIDTH)
    state["token_embedding.weight"][stored["ids"]] = torch.from_numpy(stored["rows"])
    drawn = torch.cat([state[name].flatten()[:4] for name in _clip_weights()])
    np.testing.assert_allclose(drawn, stored["probe"], atol=1e-6)
    return state


def _clip_weights():
    """As OpenAI's `CLIP` initialises itself, in the order of its draws."""
    generator = torch.Generator().manual_seed(5)

    def uniform(*shape):  # torch's own of convolutions and linear layers
        return init.kaiming_uniform_(torch.empty(shape), a=math.sqrt(5), generator=generator)

    def linear(rows, columns):
        weight = uniform(rows, columns)
        torch.rand(rows, generator=generator)  # the bias
        return weight

    def normal(*shape, std=_WIDTH**-0.5):
        return std * torch.randn(shape, generator=generator)

    def blocks(prefix, layers):
        for i in range(layers):
            block = f"{prefix}transformer.resblocks.{i}"
            yield f"{block}.attn.out_proj.weight", linear(_WIDTH, _WIDTH)
            in_proj = torch.empty(3 * _WIDTH, _WIDTH)
            yield f"{block}.attn.in_proj_weight", init.xavier_uniform_(in_proj, generator=generator)
            yield f"{block}.mlp.c_fc.weight", linear(4 * _WIDTH, _WIDTH)
            yield f"{block}.mlp.c_proj.weight", linear(_WIDTH, 4 * _WIDTH)

    weights = {"visual.conv1.weight": uniform(_WIDTH, 3, 8, 8)}
    normal(_WIDTH)  # the class embedding, which is stored
    weights["visual.positional_embedding"] = normal(17, _WIDTH)
    weights |= blocks("visual.", _LAYERS)
    weights["visual.proj"] = normal(_WIDTH, _EMBED)
    list(blocks("", _TEXT_LAYERS))  # drawn once more below
    normal(_VOCABULARY, _WIDTH)  # word embeddings, twice
    normal(_VOCABULARY, _WIDTH)
    weights["positional_embedding"] = normal(77, _WIDTH, std=0.01)
    deep, wide = _WIDTH**-0.5 * (2 * _TEXT_LAYERS) ** -0.5, (2 * _WIDTH) ** -0.5
    for i in range(_TEXT_LAYERS):
        block = f"transformer.resblocks.{i}"
        weights[f"{block}.attn.in_proj_weight"] = normal(3 * _WIDTH, _WIDTH)
        weights[f"{block}.attn.out_proj.weight"] = normal(_WIDTH, _WIDTH, std=deep)
        weights[f"{block}.mlp.c_fc.weight"] = normal(4 * _WIDTH, _WIDTH, std=wide)
        weights[f"{block}.mlp.c_proj.weight"] = normal(_WIDTH, 4 * _WIDTH, std=deep)
    weights["text_projection"] = normal(_WIDTH, _EMBED)
    return weights


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
