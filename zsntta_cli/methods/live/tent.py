"""Tent, "Fully Test-time Adaptation by Entropy Minimization", arXiv 2006.10726.

A batch is classified, ZS-CLIP's rule (Eq. 1) calls some of its samples noise, and one step changes
the scales and shifts of the image tower's normalisation layers for all later batches. The loss is
the mean entropy of the class probabilities of the samples that are not called noise. The optimiser
is Adam, or SGD with Nesterov momentum 0.9.

BatchNorm uses the statistics of the whole batch, including samples that do not pass. At batch size
1 these are the statistics of one image, of H*W values for each channel.

AdaND is plug-and-play (appendix): from its N-th step on, the samples that its detector calls clean
update Tent, and a setting chooses the detector's features. With the `frozen` ones it decides as
`adand` does, and the class of what Tent does not adapt on is frozen CLIP's, from the cache. With
the `adapted` ones it decides by the features of Tent's encoder and learns from them; its labels are
still ZS-CLIP's decisions.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors.adand import AdaND
from zsntta_cli.methods.live import base as live
from zsntta_cli.methods.live.settings import BatchSettings
from zsntta_cli.methods.live.tuned import adapts_on
from zsntta_cli.methods.method import Live
from zsntta_cli.methods.scores import Mask

_MOMENTUM = 0.0  # of BatchNorm's running statistics, which are not used


def run(method: Live) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts."""
    data, pipeline = method.data, method.options.pipeline
    with adaptable(data, method.options) as tent:
        for items, images in data.batches(tent.batches):
            logits = data.logits(data.encoder.image_features(images))
            decisions = live.decide(logits, method.threshold)
            chosen = adapts_on(data.stream, pipeline, items, decisions.is_noise, data.truly_clean)
            tent.adapt(items, logits, chosen)
            yield decisions


@contextmanager
def adaptable(data: live.LiveData, options: BatchSettings) -> Iterator["EntropySteps"]:
    """Let Tent step on the encoder of a stream; restore the encoder's parameters afterwards."""
    tower = data.encoder.model.visual
    layers = [*live.norm_layers(tower).values()]
    with live.adapting(data.encoder, layers) as parameters, live.batch_statistics(tower, _MOMENTUM):
        yield EntropySteps(data, options, parameters)


class EntropySteps:
    """Tent's batches of a stream, its optimiser, and its steps."""

    def __init__(
        self, data: live.LiveData, options: BatchSettings, parameters: Sequence[torch.nn.Parameter]
    ) -> None:
        self.data, self.parameters = data, parameters
        self.batches = live.in_batches(np.arange(len(data)), options.batch_size)
        sgd = partial(torch.optim.SGD, momentum=0.9, nesterov=True)
        kind: Any = sgd if options.optimizer == "sgd" else torch.optim.Adam
        self.optimizer = kind(parameters, lr=options.learning_rate)

    def adapt(self, items: live.Items, logits: torch.Tensor, chosen: Mask) -> None:
        """Take a step on the mean entropy of the chosen (B,) samples of a batch, if any."""
        if chosen.any():
            entropies = live.entropy(logits[chosen])
            self.data.watch(entropies, items[chosen])
            live.step(self.optimizer, entropies.mean())


def behind_adand(method: Live) -> Generator[Decisions]:
    """Decide as AdaND does, and name the classes of clean items by Tent, a batch at a time."""
    detector = AdaND(method.data.stream, method.options, method.threshold.settings)
    decided = _shared if method.options.detector_features == "adapted" else _frozen
    with adaptable(method.data, method.options.tent) as tent:
        yield from decided(tent, detector)


def _frozen(tent: EntropySteps, detector: AdaND) -> Generator[Decisions]:
    """Decide by frozen features; only items that are called clean pass through the encoder."""
    data, decisions = tent.data, detector.push(tent.data.stream)
    adapts, class_index = _adapts(decisions, data.stream), decisions.class_index.copy()
    clean = [items[adapts[items]] for items in tent.batches]
    loaded = data.batches([items for items in clean if len(items)])
    for batch, items in zip(tent.batches, clean, strict=True):
        if len(items):
            logits = data.logits(data.encoder.image_features(next(loaded)[1]))
            class_index[items], _ = live.zero_shot_scores(logits)
            tent.adapt(items, logits, np.ones(len(items), bool))
        yield replace(decisions.part(batch), class_index=class_index[batch])


def _shared(tent: EntropySteps, detector: AdaND) -> Generator[Decisions]:
    """Decide by the features of Tent's encoder; the detector learns from them, too."""
    data, batches, warm_up = tent.data, tent.batches, detector.options.warm_up
    # Before the first step Tent's features are the frozen ones, unless BatchNorm mixes them.
    mixes = live.batch_norms(data.encoder.model.visual)
    frozen = 0 if mixes else sum(bool(items[-1] < warm_up) for items in batches)
    for items in batches[:frozen]:
        yield detector.push(data.stream.part(items))
    for items, images in data.batches(batches[frozen:]):
        features, seen = data.encoder.image_features(images), data.stream.part(items)
        seen = replace(seen, image_features=features.detach().cpu().numpy())
        decisions, logits = detector.push(seen), data.logits(features)
        by_tent, _ = live.zero_shot_scores(logits)
        tent.adapt(items, logits, _adapts(decisions, seen))
        class_index = np.where(items < warm_up, decisions.class_index, by_tent)
        yield replace(decisions, class_index=class_index)


def _adapts(decisions: Decisions, items: StreamData) -> Mask:
    """The items that the detector, not ZS-CLIP, calls clean."""
    thresholds, is_noise = decisions.detector_threshold, decisions.is_noise
    assert thresholds is not None
    assert is_noise is not None
    return ~np.isnan(thresholds) & ~is_noise & ~items.injected
