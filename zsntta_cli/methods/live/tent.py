"""Tent, "Fully Test-time Adaptation by Entropy Minimization", arXiv 2006.10726.

A batch is classified, ZS-CLIP's rule (Eq. 1) calls some of its samples noise, and one step on the
mean entropy of the other samples changes the scales and shifts of the image tower's normalisation
layers for all later batches.

Text features are constants, so a batch takes one pass of the image tower. BatchNorm uses the
statistics of the whole batch, including samples that do not pass. At batch size 1 these are the
statistics of one image, of H*W values for each channel.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live.base import (
    Adapted,
    LiveData,
    Mask,
    adapting,
    batch_norms,
    batch_statistics,
    entropy,
    in_batches,
    norm_layers,
    zero_shot_scores,
)
from zsntta_cli.methods.live.settings import BatchSettings, Tent
from zsntta_cli.methods.live.tuned import adapts_on
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

_MOMENTUM = 0.0  # of BatchNorm's running statistics, which are not used


def run(
    data: LiveData, options: Tent.Settings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts."""
    size = options.batch_size
    online = OnlineThreshold(threshold, size)
    with adaptable(data, options) as tent:
        for items, images in data.batches(in_batches(np.arange(len(data)), size)):
            logits = tent.logits(data.encoder.image_features(images))
            class_index, u = zero_shot_scores(logits.detach(), data.match_bias)
            thresholds = online(u)
            of_pipeline = options.pipeline, items, u > thresholds, data.truly_clean
            tent.adapt(items, logits, adapts_on(data.stream, *of_pipeline))
            yield Decisions(class_index, u > thresholds, 1 - u, thresholds)


@contextmanager
def adaptable(data: LiveData, options: BatchSettings) -> Iterator["EntropySteps"]:
    """Let Tent step on the encoder of a stream; restore the encoder's parameters afterwards."""
    tower = data.encoder.model.visual
    layers = list(norm_layers(tower).values())
    with adapting(data.encoder, layers) as parameters, batch_statistics(tower, _MOMENTUM):
        yield EntropySteps(data, options, parameters)


class EntropySteps:
    """Tent's steps: the `logits` of a batch by the current tower, then `adapt` on some of it."""

    def __init__(
        self, data: LiveData, options: BatchSettings, parameters: Sequence[torch.nn.Parameter]
    ) -> None:
        self._data = data
        self.mixes = bool(batch_norms(data.encoder.model.visual))  # samples of a batch
        self._text = data.text_features()
        self._adapted = Adapted(parameters, data.encoder.identity["precision"])
        assert options.learning_rate is not None
        if options.optimizer == "sgd":
            self._optimizer: torch.optim.Optimizer = torch.optim.SGD(
                self._adapted.masters, options.learning_rate, momentum=0.9, nesterov=True
            )
        else:
            self._optimizer = torch.optim.Adam(self._adapted.masters, options.learning_rate)

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """The logits (B, C) of raw features (B, D)."""
        return self._data.logits(features, self._text)

    def adapt(self, items: NDArray[np.int64], logits: torch.Tensor, chosen: Mask) -> None:
        """Take a step on the mean entropy of the chosen (B,) samples of a batch, if any."""
        if not chosen.any():
            return
        entropies = entropy(logits[torch.from_numpy(chosen).to(logits.device)])
        self._data.watch(entropies, items[chosen], self._data.encoder.model.visual)
        self.minimise(entropies.mean())

    def minimise(self, loss: torch.Tensor) -> None:
        """Take a step on a loss, unless its gradients overflow."""
        if self._adapted.backward(loss):
            self._optimizer.step()
            self._adapted.publish()
