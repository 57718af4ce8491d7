"""Small random towers, and live streams on them whose encoder input is there already."""

from contextlib import contextmanager

import numpy as np
import open_clip.factory
import torch
from torch import nn

from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions, Pool, StreamData
from zsntta_cli.methods.live.base import LiveData
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation.runs import build_run

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 1, "layers": 1}
RESNET = {"layers": [1, 1, 1, 1], "width": 8, "image_size": 64, "patch_size": None}
VIT = {"image_size": 16, "layers": 24, "width": 16, "head_width": 16, "patch_size": 8}
SHALLOW = {**VIT, "layers": 3}
TOWERS = {"resnet-towers": RESNET, "vit-towers": VIT, "shallow-towers": SHALLOW}
BATCH_NORM = nn.BatchNorm2d
COUNT = 96


@contextmanager
def encoders():
    """OpenAI's kind of ResNet and ViTs of 24 blocks and of 3, random."""
    known = dict(open_clip.factory._MODEL_CONFIGS)
    for name, vision in TOWERS.items():
        config = {"embed_dim": 32, "quick_gelu": True, "vision_cfg": vision, "text_cfg": TEXT}
        open_clip.factory._MODEL_CONFIGS[name] = config
    yield {name: load_encoder(EncoderChoice(name, "none"), "cpu") for name in TOWERS}
    open_clip.factory._MODEL_CONFIGS.clear()
    open_clip.factory._MODEL_CONFIGS.update(known)


class Ready(LiveData):
    """A stream whose encoder input is there already: noise of another mean for each class."""

    def batches(self, batches):
        for items in batches:
            self.encoder.batch_sizes.append(len(items))
            yield items, self.encoder.inputs[items]


def live_data(encoder, pipeline="normal", count=COUNT, injected=False):
    """Every third item injected noise where that is asked for."""
    generator = np.random.default_rng(0)
    shape = (count, 3, encoder.image_size, encoder.image_size)
    images = generator.normal(size=shape) + 3 * generator.normal(size=(count, 3, 1, 1))
    encoder.inputs, encoder.batch_sizes = torch.from_numpy(images.astype(np.float32)), []
    features = encoder.encode_images(encoder.inputs)
    text = generator.normal(size=(4, features.shape[1])) + 0.0
    text = (text / np.linalg.norm(text, axis=1, keepdims=True)).astype(np.float32)
    pool = Pool(features, text, 15.0, zero_shot(features, text, 15.0))
    noise = np.arange(count) % 3 == 2 if injected else np.zeros(count, bool)
    stream = StreamData(pool, np.arange(count), noise)
    clean = np.arange(count) % 2 == 0 if pipeline == "gt" else None
    return Ready(stream, encoder, None, list("abcd"), "a {}.", truly_clean=clean)


def decided(data, run):
    method = METHODS[run.method].load()
    return Decisions.joined(list(method(data, run.options, run.threshold)))


def live_run(method, preset="paper", **values):
    return build_run(method, "", "shapes", None, "a photo of a {}.", preset, **values)


def batch_norms(tower):
    return [layer for layer in tower.modules() if isinstance(layer, BATCH_NORM)]


def norm_parameters(tower, left_out="nothing"):
    """Scales and shifts of the normalisation layers."""
    found = []
    for name, layer in tower.named_modules():
        if isinstance(layer, (BATCH_NORM, nn.LayerNorm)) and left_out not in name:
            found += [layer.weight, layer.bias]
    return found
