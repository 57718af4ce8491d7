"""AdaND with Tent as its classifier (appendix: AdaND is plug-and-play).

From the detector's N-th step on, the samples that it calls clean update Tent, a batch of the stream
at a time. A setting chooses the detector's features:

- `frozen`: the detector gets the frozen encoder's features, so it decides as `adand` does on the
  same stream. Until Tent adapts, and for items that are called noise, the class is frozen CLIP's,
  from the cache.
- `adapted`: the detector decides by the features of Tent's encoder and learns from them, like a
  plug-in that shares the encoder. Its labels are still ZS-CLIP's decisions.
"""

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.detectors.adand import AdaND
from zsntta_cli.methods.live import base as live
from zsntta_cli.methods.live.tent import EntropySteps, adaptable
from zsntta_cli.methods.method import Live
from zsntta_cli.methods.scores import Mask


def run(method: Live) -> Generator[Decisions]:
    """Decide on every item, a batch of Tent at a time."""
    data, options = method.data, method.options
    detector = AdaND(data.stream, options, method.threshold.settings)
    shares = options.detector_features == "adapted"
    with adaptable(data, options.tent) as tent:
        yield from (_sharing_an_encoder if shares else _on_frozen_features)(tent, detector)


def _on_frozen_features(tent: EntropySteps, detector: AdaND) -> Generator[Decisions]:
    """Decide by frozen features; only items that are called clean pass through the encoder."""
    data, stream = tent.data, tent.data.stream
    decisions = detector.push(stream)
    decisions = replace(decisions, class_index=decisions.class_index.copy())
    batches = live.in_batches(np.arange(len(data)), tent.options.batch_size)
    adapts = _adapts(decisions, stream.injected)
    clean = [batch[adapts[batch]] for batch in batches]
    loaded = data.batches([items for items in clean if len(items)])
    for batch, items in zip(batches, clean, strict=True):
        if len(items):
            logits = tent.logits(next(loaded)[1])
            decisions.class_index[items], _ = live.zero_shot_scores(logits.detach())
            tent.adapt(items, logits, np.ones(len(items), bool))
        yield decisions.part(batch)


def _sharing_an_encoder(tent: EntropySteps, detector: AdaND) -> Generator[Decisions]:
    """Decide by the features of Tent's encoder, from which the detector also learns."""
    data, stream, stage1 = tent.data, tent.data.stream, detector.options.warm_up
    batches = live.in_batches(np.arange(len(data)), tent.options.batch_size)
    # Before the first step Tent's features are the frozen ones, unless BatchNorm mixes them.
    frozen_batches = [] if tent.mixes else [batch for batch in batches if batch[-1] < stage1]
    for items in frozen_batches:
        yield detector.push(stream.part(items))
    for items, images in data.batches(batches[len(frozen_batches) :]):
        features = data.encoder.image_features(images)
        seen = replace(stream.part(items), image_features=features.detach().cpu().numpy())
        decisions, logits = detector.push(seen), tent.logits_of(features)
        class_index, _ = live.zero_shot_scores(logits.detach())
        tent.adapt(items, logits, _adapts(decisions, stream.injected[items]))
        class_index = np.where(items < stage1, decisions.class_index, class_index)
        yield replace(decisions, class_index=class_index)


def _adapts(decisions: Decisions, injected: Mask) -> Mask:
    """The items that the detector, not ZS-CLIP, calls clean."""
    own, is_noise = decisions.detector_threshold, decisions.is_noise
    assert own is not None
    assert is_noise is not None
    return ~np.isnan(own) & ~is_noise & ~injected
