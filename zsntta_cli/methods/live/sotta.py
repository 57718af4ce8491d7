"""SoTTA, "Robust Test-Time Adaptation on Noisy Data Streams", arXiv 2310.10074.

Samples come one by one. A sample enters a memory if ZS-CLIP's rule (Eq. 1) calls it clean and the
model is confident; the memory is balanced by predicted class (high-confidence uniform-class
sampling). Every 64 items one step on the whole memory changes all but the last normalisation layers
of the image tower. The items between two steps take one pass.

The loss is the mean entropy of the class probabilities in the memory. Adam gets its gradient at the
worst point near the current parameters, at the distance ρ up the gradient there (sharpness-aware
minimisation, arXiv 2010.01412). In that step all BatchNorms use the statistics of the memory and
update their running statistics, which decide on items.
"""

import random
import re
from collections import Counter
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import base as live
from zsntta_cli.methods.live.tuned import adapts_on
from zsntta_cli.methods.method import Live
from zsntta_cli.methods.threshold import OnlineThreshold

_STEP_BATCH = 128  # samples of the memory in a step
_INSIDE_LOG = 1e-6
_MOMENTUM = 0.2  # of BatchNorm's running statistics
# These are not adapted: a transformer's last blocks, a convolutional tower's last stage.
_TOP_BLOCKS = 3
_VIT_B_TOP = range(9, 12)  # the last three of a ViT-B
_TOP_STAGES = ("layer4.", "stages.3.")
_BLOCK = re.compile(r"(?<!\w)(?:res)?blocks\.(\d+)\.")  # of a transformer


class Remembered(NamedTuple):
    """A sample in the memory."""

    item: int  # in the stream
    class_index: int  # as predicted when it came
    image: torch.Tensor  # (3, H, W) encoder input


def run(method: Live) -> Generator[Decisions]:
    """Decide on every item; the items between two steps are decided together."""
    data, options, tower = method.data, method.options, method.data.encoder.model.visual
    online = OnlineThreshold(method.threshold.settings)
    memory, draw = list[Remembered](), random.Random(data.stream.seed)
    layers = [*adapted_layers(tower, options.frozen_blocks).values()]
    with live.adapting(data.encoder, layers) as parameters:
        optimizer = torch.optim.Adam(
            parameters, options.learning_rate, weight_decay=options.weight_decay
        )
        first = np.arange(min(options.update_every + options.late_start, len(data)))
        later = live.in_batches(np.arange(len(first), len(data)), options.update_every)
        for items, images in data.batches([first, *later]):  # up to each step, and after the last
            with torch.no_grad():
                passes = torch.split(images, options.batch_size or len(images))
                features = torch.cat([data.encoder.image_features(part) for part in passes])
                decisions = live.decide(data.logits(features), online)
            is_noise, truly_clean = decisions.is_noise, data.truly_clean
            enters = adapts_on(data.stream, options.pipeline, items, is_noise, truly_clean)
            for i in np.flatnonzero(enters & (decisions.id_score >= options.confidence)):
                class_index = int(decisions.class_index[i])
                if len(memory) == options.memory:
                    del memory[leaving(memory, class_index, draw)]
                memory.append(Remembered(int(items[i]), class_index, images[i].clone()))
            if len(items) >= options.update_every:
                with live.batch_statistics(tower, _MOMENTUM):
                    for start in range(0, len(memory), _STEP_BATCH):
                        samples = memory[start : start + _STEP_BATCH]
                        sharpness_step(data, samples, optimizer, options.rho)
            yield decisions


def leaving(memory: Sequence[Remembered], class_index: int, draw: random.Random) -> int:
    """Draw which sample leaves a full memory: one of a largest class, the new sample's if it is."""
    counts = Counter(sample.class_index for sample in memory)
    largest = [c for c, count in counts.items() if count == max(counts.values())]
    chosen = class_index if class_index in largest else draw.choice(largest)
    return draw.choice([i for i, s in enumerate(memory) if s.class_index == chosen])


def adapted_layers(tower: nn.Module, frozen_blocks: str = "last") -> dict[str, nn.Module]:
    """The normalisation layers without those of the last stage or of the frozen blocks.

    Frozen are a transformer's `last` three blocks, or `9-11` at any depth, as in the released code.
    The two are the same for a ViT-B but not for a ViT-L.
    """
    layers = live.norm_layers(tower)
    matches = {name: _BLOCK.search(name) for name in layers if "stages." not in name}
    blocks = {name: int(match[1]) for name, match in matches.items() if match}
    depth = 1 + max(blocks.values(), default=0)
    frozen = range(depth - _TOP_BLOCKS, depth) if frozen_blocks == "last" else _VIT_B_TOP
    return {
        name: layer
        for name, layer in layers.items()
        if blocks.get(name) not in frozen and not any(stage in name for stage in _TOP_STAGES)
    }


def sharpness_step(
    data: live.LiveData, samples: Sequence[Remembered], optimizer: torch.optim.Optimizer, rho: float
) -> None:
    """Take a step on the entropy of samples at the worst point within a radius ρ (SAM)."""
    parameters = optimizer.param_groups[0]["params"]
    images = torch.stack([s.image for s in samples])

    def entropies() -> torch.Tensor:
        return live.entropy(data.logits(data.encoder.image_features(images)), _INSIDE_LOG)

    before = entropies()
    data.watch(before, np.array([s.item for s in samples]))
    gradients = torch.autograd.grad(before.mean(), parameters, materialize_grads=True)
    scale = rho / (torch.stack([g.norm() for g in gradients]).norm() + 1e-12)
    with torch.no_grad():  # up the gradient, by ρ
        worst = [p + g * scale for p, g in zip(parameters, gradients, strict=True)]
    with live.at(parameters, worst):
        optimizer.zero_grad()
        entropies().mean().backward()  # type: ignore[no-untyped-call]
    optimizer.step()
