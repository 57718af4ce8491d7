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
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.detectors.adand import AdaND
from zsntta_cli.methods.live.base import LiveData, in_batches, zero_shot_scores
from zsntta_cli.methods.live.settings import AdaNDTent
from zsntta_cli.methods.live.tent import adaptable
from zsntta_cli.settings import ThresholdSettings

Items = NDArray[np.int64]


def run(
    data: LiveData, options: AdaNDTent.Settings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide on every item, a batch of Tent at a time."""
    shares = options.detector_features == "adapted"
    decide = _sharing_an_encoder if shares else _on_frozen_features
    yield from decide(data, options, threshold)


def _on_frozen_features(
    data: LiveData, options: AdaNDTent.Settings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide by frozen features; only items that are called clean pass through the encoder."""
    decisions = AdaND(data.stream, options, threshold).push(data.stream)
    decisions = replace(decisions, class_index=decisions.class_index.copy())
    batches = in_batches(np.arange(len(data)), options.tent_batch_size)
    adapts = _adapts(decisions, data.stream.injected)
    clean = [batch[adapts[batch]] for batch in batches]
    loaded = data.batches([items for items in clean if len(items)])
    with adaptable(data, options.tent) as tent:
        for batch, items in zip(batches, clean, strict=True):
            if len(items):
                _, images = next(loaded)
                logits = tent.logits(data.encoder.image_features(images))
                decisions.class_index[items], _ = zero_shot_scores(logits.detach())
                tent.adapt(items, logits, np.ones(len(items), bool))
            yield decisions.part(_run_of(batch))


def _sharing_an_encoder(
    data: LiveData, options: AdaNDTent.Settings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide by the features of Tent's encoder, from which the detector also learns."""
    stream, stage1 = data.stream, options.warm_up
    online = AdaND(stream, options, threshold)
    batches = in_batches(np.arange(len(data)), options.tent_batch_size)
    with adaptable(data, options.tent) as tent:
        # Before the first step Tent's features are the frozen ones, unless BatchNorm mixes them.
        frozen_batches = [] if tent.mixes else [batch for batch in batches if batch[-1] < stage1]
        for items in frozen_batches:
            yield online.push(stream.part(_run_of(items)))
        for items, images in data.batches(batches[len(frozen_batches) :]):
            features = data.encoder.image_features(images)
            seen = replace(
                stream.part(_run_of(items)), image_features=features.detach().cpu().numpy()
            )
            decisions, logits = online.push(seen), tent.logits(features)
            class_index, _ = zero_shot_scores(logits.detach())
            tent.adapt(items, logits, _adapts(decisions, stream.injected[items]))
            class_index = np.where(items < stage1, decisions.class_index, class_index)
            yield replace(decisions, class_index=class_index)


def _adapts(decisions: Decisions, injected: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The items that the detector, not ZS-CLIP, calls clean."""
    assert decisions.detector_threshold is not None
    assert decisions.is_noise is not None
    return ~np.isnan(decisions.detector_threshold) & ~decisions.is_noise & ~injected


def _run_of(items: Items) -> slice:
    return slice(int(items[0]), int(items[-1]) + 1)
