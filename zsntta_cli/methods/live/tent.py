"""Tent, "Fully Test-time Adaptation by Entropy Minimization", arXiv 2006.10726.

A batch is classified, ZS-CLIP's rule (Eq. 1) calls some of its samples noise, and one step on the
mean entropy of the other samples changes the scales and shifts of the image tower's normalisation
layers for all later batches.

Time is saved in two ways. Text features are constants. A sample is encoded once: with its graph if
the frozen model calls it clean, so that it is likely to pass, and without it if not. Only a sample
that passes against expectation is encoded again. BatchNorm uses the statistics of the whole batch,
including samples that do not pass, so with it the whole batch has its graph. At batch size 1 these
are the statistics of one image, of H*W values for each channel.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live.adaptation import (
    Adapted,
    adapting,
    batch_norms,
    batch_statistics,
    entropy,
    norm_layers,
)
from zsntta_cli.methods.live.base import LiveData, in_batches, zero_shot_scores
from zsntta_cli.methods.live.settings import TentSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

_MOMENTUM = 0.0  # of BatchNorm's running statistics, which are not used
Mask = NDArray[np.bool_]


def run(
    data: LiveData, options: TentSettings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts."""
    size, u = options.batch_size, data.stream.noise_score
    frozen_noise = u > OnlineThreshold(threshold, size)(u)
    online = OnlineThreshold(threshold, size)
    with adaptable(data, options) as tent:
        for items, images in data.batches(in_batches(np.arange(len(data)), size)):
            likely = data.adapts_on(options.pipeline, items, frozen_noise[items])
            class_index, u = zero_shot_scores(tent.predict(images, likely), data.match_bias)
            thresholds = online(u)
            tent.adapt(items, data.adapts_on(options.pipeline, items, u > thresholds))
            yield Decisions(class_index, u > thresholds, 1 - u, thresholds)


@contextmanager
def adaptable(data: LiveData, options: TentSettings) -> Iterator["Tent"]:
    """Make Tent on the encoder of a stream, and restore the encoder's parameters afterwards."""
    tower = data.encoder.model.visual
    layers = list(norm_layers(tower).values())
    with adapting(data.encoder, layers) as parameters, batch_statistics(tower, _MOMENTUM):
        yield Tent(data, options, parameters)


class Tent:
    """A classifier that adapts: `predict` a batch (or `encode` it), then `adapt` on some of it."""

    def __init__(
        self, data: LiveData, options: TentSettings, parameters: Sequence[torch.nn.Parameter]
    ) -> None:
        self._data = data
        self.mixes = bool(batch_norms(data.encoder.model.visual))  # samples of a batch
        self._text = data.text_features()
        self._adapted = Adapted(parameters, data.encoder.identity["precision"])
        self._optimizer = _optimizer(options, self._adapted.masters)

    def predict(self, images: torch.Tensor, likely: Mask) -> torch.Tensor:
        """The logits (B, C) of images (B, 3, H, W); Tent expects to adapt on the `likely` (B,)."""
        return self.logits(self.encode(images, likely))

    def encode(self, images: torch.Tensor, likely: Mask) -> torch.Tensor:
        """The raw features (B, D) of such images by the current encoder."""
        self._images = images
        self._likely = np.ones_like(likely) if self.mixes else likely
        parts = []
        for rows, with_graph in ((~self._likely, False), (self._likely, True)):
            if rows.any():
                with torch.set_grad_enabled(with_graph):
                    self._graph = self._features(rows)
                parts.append(self._graph.detach())
        order = np.argsort(self._likely, kind="stable")
        return torch.cat(parts)[torch.from_numpy(order.argsort())]

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """The logits (B, C) of raw features (B, D)."""
        return self._data.logits(features, self._text)

    def adapt(self, items: NDArray[np.int64], chosen: Mask) -> None:
        """Take a step on the mean entropy of the chosen (B,) samples of the last batch."""
        extra = chosen & ~self._likely
        expected = chosen & self._likely
        parts = [self._graph[chosen[self._likely]]] if expected.any() else []
        parts += [self._features(extra)] if extra.any() else []
        if parts:
            entropies = entropy(self.logits(torch.cat(parts)))
            self._data.watch(
                entropies, np.append(items[expected], items[extra]), self._data.encoder.model.visual
            )
            self.minimise(entropies.mean())
        del self._graph, self._images

    def minimise(self, loss: torch.Tensor) -> None:
        """Take a step on a loss, unless its gradients overflow."""
        if self._adapted.backward(loss):
            self._optimizer.step()
            self._adapted.publish()

    def _features(self, rows: Mask) -> torch.Tensor:
        return self._data.encoder.image_features(self._images[rows])


def _optimizer(options: TentSettings, parameters: Sequence[torch.Tensor]) -> torch.optim.Optimizer:
    rate = options.learning_rate
    assert rate is not None
    if options.optimizer == "sgd":
        return torch.optim.SGD(parameters, rate, momentum=0.9, nesterov=True)
    return torch.optim.Adam(parameters, rate)
