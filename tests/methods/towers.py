"""Small random towers, and live streams on them whose encoder input is there already."""

from contextlib import contextmanager

import numpy as np
import open_clip.factory
import torch
from made import PROMPT
from streams import of_features

from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import base
from zsntta_cli.methods.live.base import LiveData
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.prompts import class_prompts
from zsntta_cli.simulation.runs import build_run

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 1, "layers": 1}
RESNET = {"layers": [1, 1, 1, 1], "width": 8, "image_size": 64, "patch_size": None}
VIT = {"image_size": 16, "layers": 24, "width": 16, "head_width": 16, "patch_size": 8}
SHALLOW = {**VIT, "layers": 3}
TOWERS = {"resnet-towers": RESNET, "vit-towers": VIT, "shallow-towers": SHALLOW}


@contextmanager
def registered(configs):
    """open_clip knows architectures, by their names, as it knows its own."""
    known = dict(open_clip.factory._MODEL_CONFIGS)
    open_clip.factory._MODEL_CONFIGS.update(configs)
    yield
    open_clip.factory._MODEL_CONFIGS.clear()
    open_clip.factory._MODEL_CONFIGS.update(known)


@contextmanager
def encoders():
    """OpenAI's kind of ResNet and ViTs of 24 blocks and of 3, random."""
    small = {"embed_dim": 32, "quick_gelu": True, "text_cfg": TEXT}
    with registered({name: small | {"vision_cfg": vision} for name, vision in TOWERS.items()}):
        yield {name: load_encoder(EncoderChoice(name, "none"), "cpu") for name in TOWERS}


class Ready(LiveData):
    """A stream whose encoder input is there already: `inputs` of the encoder."""

    def batches(self, batches):
        return ((items, self.encoder.inputs[items]) for items in batches)


def of_inputs(encoder, inputs, names, truly_clean=None, scale=None, kind=Ready):
    """A stream of inputs of an encoder, of classes of which it embeds the names."""
    encoder.inputs = inputs
    features = encoder.encode_images(inputs).astype(np.float32)
    text = encoder.encode_texts(class_prompts(PROMPT, names))
    scale = encoder.identity["logit_scale"] if scale is None else scale
    return kind(of_features(features, text, scale), encoder, None, names, PROMPT,
                truly_clean=truly_clean)  # fmt: skip


def noisy_crops(data, items, *_):
    """A crop of each item, another tensor than its image and always the same."""
    noise = torch.randn(data.encoder.inputs.shape, generator=torch.Generator().manual_seed(1))
    return ((i, (data.encoder.inputs + noise)[i : i + 1]) for i in items.tolist())


def decided(data, run):
    return Decisions.joined(list(METHODS[run.method](data, run.options, run.threshold).run()))


def decided_as_released(data, run, expected, monkeypatch, logits_within, chosen=slice(None)):
    """The decisions, which are the released code's, and by its logits, where any are made."""
    seen, scores = [], base.zero_shot_scores
    monkeypatch.setattr(
        base, "zero_shot_scores", lambda z: seen.append(z.detach().clone()) or scores(z)
    )
    # oneDNN's sums are in another order than those of the released run, whose learning rates
    # amplify rounding.
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    decisions = decided(data, run)
    assert np.array_equal(decisions.class_index, expected["class_index"])
    assert np.array_equal(decisions.is_noise, expected["is_noise"])
    logits = expected["logits"][chosen]
    np.testing.assert_allclose(torch.cat(seen), logits, atol=logits_within)
    return decisions


def live_run(method, preset="paper", **values):
    return build_run(method, "", "shapes", None, "a photo of a {}.", preset, **values)
