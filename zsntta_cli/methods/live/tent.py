"""Tent, "Fully Test-time Adaptation by Entropy Minimization", arXiv 2006.10726.

A batch is classified, ZS-CLIP's rule (Eq. 1) calls some of its samples noise, and one step on the
mean entropy of the other samples changes the scales and shifts of the image tower's normalisation
layers for all later batches.

Text features are constants, so a batch takes one pass of the image tower. BatchNorm uses the
statistics of the whole batch, including samples that do not pass. At batch size 1 these are the
statistics of one image, of H*W values for each channel.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import base as live
from zsntta_cli.methods.live.settings import BatchSettings
from zsntta_cli.methods.live.tuned import adapts_on
from zsntta_cli.methods.method import Live
from zsntta_cli.methods.scores import Mask
from zsntta_cli.methods.threshold import OnlineThreshold

_MOMENTUM = 0.0  # of BatchNorm's running statistics, which are not used

# It learns from a batch: its items (B,), input (B, 3, H, W), logits (B, C) and noise decisions.
Learn = Callable[[live.Items, torch.Tensor, torch.Tensor, Mask], object]


def run(method: Live) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts."""
    data, options = method.data, method.options
    with adaptable(data, options) as tent:

        def learn(items: live.Items, _: torch.Tensor, logits: torch.Tensor, is_noise: Mask) -> None:
            of_pipeline = options.pipeline, items, is_noise, data.truly_clean
            tent.adapt(items, logits, adapts_on(data.stream, *of_pipeline))

        yield from tent.decide(method.threshold, learn)


@contextmanager
def adaptable(data: live.LiveData, options: BatchSettings) -> Iterator["EntropySteps"]:
    """Let Tent step on the encoder of a stream; restore the encoder's parameters afterwards."""
    tower = data.encoder.model.visual
    layers = list(live.norm_layers(tower).values())
    with live.adapting(data.encoder, layers) as parameters, live.batch_statistics(tower, _MOMENTUM):
        yield EntropySteps(data, options, parameters)


class EntropySteps:
    """Tent's steps: the `logits` of a batch by the current tower, then `adapt` on some of it."""

    def __init__(
        self, data: live.LiveData, options: BatchSettings, parameters: list[torch.nn.Parameter]
    ) -> None:
        self.data, self.options, self.parameters = data, options, parameters
        self.tower, self._text = data.encoder.model.visual, data.text_features()
        self.mixes = bool(live.batch_norms(self.tower))  # samples of a batch
        kind: Any = torch.optim.Adam
        if options.optimizer == "sgd":
            kind = partial(torch.optim.SGD, momentum=0.9, nesterov=True)
        self.optimizer = kind(parameters, lr=options.learning_rate)

    def logits(self, images: torch.Tensor) -> torch.Tensor:
        """The logits (B, C) of input (B, 3, H, W)."""
        return self.logits_of(self.data.encoder.image_features(images))

    def logits_of(self, features: torch.Tensor) -> torch.Tensor:
        """The logits (B, C) of raw features (B, D)."""
        return self.data.logits(features, self._text)

    def decide(self, online: OnlineThreshold, learn: Learn) -> Iterator[Decisions]:
        """Yield the decisions on each batch by Eq. 1, from which it learns before the next one."""
        data, size = self.data, self.options.batch_size
        for items, images in data.batches(live.in_batches(np.arange(len(data)), size)):
            logits = self.logits(images)
            class_index, u = live.zero_shot_scores(logits.detach(), data.match_bias)
            thresholds = online(u)
            learn(items, images, logits, u > thresholds)
            yield Decisions(class_index, u > thresholds, 1 - u, thresholds)

    def adapt(self, items: live.Items, logits: torch.Tensor, chosen: Mask) -> None:
        """Take a step on the mean entropy of the chosen (B,) samples of a batch, if any."""
        if chosen.any():
            entropies = live.entropy(live.rows(logits, chosen))
            self.data.watch(entropies, items[chosen], self.tower)
            live.step(self.optimizer, entropies.mean())
